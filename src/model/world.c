/* SPDX-License-Identifier: MIT */
/* Makes, finds and frees the model's parts, and keeps the events not yet told. */
#include "model/world.h"
#include "model/rollout.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Events pile up only between two turns of the loop; past this something is wrong, and memory is worth more.
 */
#define EVENT_TEXT_MAX 2304
#define EVENTS_MAX     10000

static void fleet_free(struct fleet *fleet)
{
        for (size_t i = 0; i < fleet->n_workers; i++)
                free(fleet->workers[i]);
        free(fleet->workers);
        free(fleet);
}

struct world *world_free(struct world *world)
{
        if (world == NULL)
                return NULL;
        for (size_t i = 0; i < world->n_fleets; i++)
                fleet_free(world->fleets[i]);
        free(world->fleets);
        world_events_clear(world);
        free(world);
        return NULL;
}

static void world_free_pointer(struct world **world)
{
        world_free(*world);
}

/* Makes the fleets that settings have and the world has not. Returns how many, or -ENOMEM. */
static int make_fleets(const struct world *world, const struct settings *settings, struct fleet **list)
{
        int n = 0;

        for (size_t i = 0; i < settings->n_fleets; i++) {
                if (world_fleet(world, settings->fleets[i]->name) != NULL)
                        continue;
                struct fleet *fleet = calloc(1, sizeof(*fleet));

                if (fleet == NULL) {
                        while (n > 0)
                                fleet_free(list[--n]);
                        return -ENOMEM;
                }
                fleet->settings = settings->fleets[i];
                fleet->generation = 1;
                fleet->random = world->seed + (uint64_t)n;
                list[n++] = fleet;
        }
        return n;
}

int world_new(const struct settings *settings, uint64_t seed, struct world **ret)
{
        _cleanup_(world_free_pointer) struct world *world = calloc(1, sizeof(*world));

        if (world == NULL)
                return -ENOMEM;
        world->seed = seed;
        int r = world_reload(world, settings, 0);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(world);
        return 0;
}

static void reload_fleet(struct fleet *fleet, const struct fleet_settings *new, usec_t now)
{
        const struct fleet_settings *old = fleet->settings;

        /* The operator's count was given for the configured one. */
        if (new->active_process_count != old->active_process_count)
                fleet->scale = 0;
        fleet->settings = new;
        if (new->removed && !old->removed) {
                rollout_abort(fleet, "the fleet is no longer configured");
                world_event(fleet->world, EVENT_ORDER, fleet, NULL,
                            "fleet '%s': no longer configured, its workers are drained", new->name);
        } else if (old->removed && !new->removed) {
                world_event(fleet->world, EVENT_ORDER, fleet, NULL, "fleet '%s': configured again",
                            new->name);
        }
        if (new->launch_hash != old->launch_hash)
                rollout_outdate(fleet, now);
}

int world_reload(struct world *world, const struct settings *settings, usec_t now)
{
        struct fleet **fleets = calloc(settings->n_fleets + 1, sizeof(struct fleet *));
        size_t n = 0;

        if (fleets == NULL)
                return -ENOMEM;
        int n_new = make_fleets(world, settings, fleets + world->n_fleets);
        if (n_new < 0) {
                free(fleets);
                return n_new;
        }
        world->settings = settings;
        for (; n < world->n_fleets; n++) {
                const struct fleet_settings *new =
                        settings_find_fleet(settings, world->fleets[n]->settings->name);

                assert(new != NULL);
                fleets[n] = world->fleets[n];
                reload_fleet(fleets[n], new, now);
        }
        for (; n_new > 0; n_new--) {
                fleets[n]->world = world;
                world->seed++;
                n++;
        }
        free(world->fleets);
        world->fleets = fleets;
        world->n_fleets = n;
        return 0;
}

void world_forget_removed(struct world *world)
{
        size_t kept = 0;

        for (size_t i = 0; i < world->n_fleets; i++) {
                struct fleet *fleet = world->fleets[i];

                if (fleet->settings->removed && fleet->n_workers == 0)
                        fleet_free(fleet);
                else
                        world->fleets[kept++] = fleet;
        }
        world->n_fleets = kept;
}

struct fleet *world_fleet(const struct world *world, const char *name)
{
        for (size_t i = 0; i < world->n_fleets; i++)
                if (strcmp(world->fleets[i]->settings->name, name) == 0)
                        return world->fleets[i];
        return NULL;
}

struct worker *world_worker(const struct world *world, const char *id)
{
        const char *slash = strrchr(id, '/');
        char name[256], index[16];

        if (slash == NULL || (size_t)(slash - id) >= sizeof(name))
                return NULL;
        memcpy(name, id, (size_t)(slash - id));
        name[slash - id] = '\0';
        const struct fleet *fleet = world_fleet(world, name);
        if (fleet == NULL)
                return NULL;
        for (size_t i = 0; i < fleet->n_workers; i++) {
                struct worker *worker = fleet->workers[i];

                snprintf(index, sizeof(index), "%u", worker->index);
                if (worker->state != WORKER_GONE && strcmp(index, slash + 1) == 0)
                        return worker;
        }
        return NULL;
}

static void count_event(struct world *world, enum event_kind kind, const struct fleet *fleet)
{
        if (fleet == NULL) {
                world->event_totals[kind]++;
                return;
        }
        for (size_t i = 0; i < world->n_fleets; i++)
                if (world->fleets[i] == fleet)
                        world->fleets[i]->totals.events[kind]++;
}

void world_event(struct world *world, enum event_kind kind, const struct fleet *fleet,
                 const struct worker *worker, const char *format, ...)
{
        char text[EVENT_TEXT_MAX], *copy;
        va_list arguments;

        count_event(world, kind, fleet);
        if (world->n_events >= EVENTS_MAX)
                return;
        if (world->n_events == world->events_allocated) {
                size_t allocated = MAX((size_t)16, 2 * world->events_allocated);
                struct event *events = realloc(world->events, allocated * sizeof(*events));

                if (events == NULL)
                        return;
                world->events = events;
                world->events_allocated = allocated;
        }
        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        copy = strdup(text);
        if (copy == NULL)
                return;
        struct event *event = &world->events[world->n_events++];
        *event = (struct event){
                .kind = kind,
                .fleet = fleet,
                .generation = fleet != NULL ? fleet->generation : 0,
                .text = copy,
        };
        if (worker != NULL) {
                event->generation = worker->generation;
                event->index = worker->index;
                event->pid = worker_pid(worker);
                event->reason = worker->reason;
        }
}

void world_events_clear(struct world *world)
{
        for (size_t i = 0; i < world->n_events; i++)
                free(world->events[i].text);
        /* A burst is rare: what it took goes back. */
        free(world->events);
        world->events = NULL;
        world->n_events = world->events_allocated = 0;
}
