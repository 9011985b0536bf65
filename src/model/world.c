/* SPDX-License-Identifier: MIT */
/* Finds the parts of a world, and adds its events. */
#include "model/world.h"

#define EVENT_TEXT_MAX 2304
/* Events accumulate only between two wakeups of the loop. A larger number is probably an error, and memory is
 * more important. */
#define EVENTS_MAX 10000

struct event *world_event(struct world *world, enum event_kind kind, struct fleet *fleet,
                          const struct worker *worker, const char *format, ...)
{
        uint64_t *totals = fleet ? fleet->totals.events : world->event_totals;
        char text[EVENT_TEXT_MAX], *copy;
        va_list arguments;

        totals[kind]++;
        if (world->n_events >= EVENTS_MAX ||
            !ARRAY_RESERVE(world->events, world->n_events, world->events_allocated))
                return NULL;
        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        copy = strdup(text);
        if (!copy)
                return NULL;
        struct event *event = &world->events[world->n_events++];
        *event = (struct event){
                .kind = kind,
                .fleet = fleet,
                .generation = fleet ? fleet->generation : 0,
                .text = copy,
                .excused =
                        fleet && !fleet->redis_up &&
                        (kind == EVENT_CRASHED || kind == EVENT_LAST_LINES || kind == EVENT_TEMPLATE_FAILED),
        };
        if (worker) {
                event->generation = worker->generation;
                event->index = worker->index;
                event->pid = worker_pid(worker);
                event->reason = worker->reason;
        }
        return event;
}

struct event *worker_event(const struct worker *worker, enum event_kind kind, const char *format, ...)
{
        char text[EVENT_TEXT_MAX];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        return world_event(worker->fleet->world, kind, worker->fleet, worker, "%s (pid %d)%s",
                           WORKER_ID(worker), (int)worker_pid(worker), text);
}

struct event *fleet_event(struct fleet *fleet, enum event_kind kind, const char *format, ...)
{
        char text[EVENT_TEXT_MAX];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        return world_event(fleet->world, kind, fleet, NULL, "fleet '%s'%s", fleet->settings->name, text);
}

void event_quote(struct event *event, const struct quoted *quoted)
{
        if (!event || !quoted || quoted_is_empty(quoted))
                return;
        free(event->quoted);
        event->quoted = malloc(sizeof(*event->quoted));
        if (event->quoted)
                *event->quoted = *quoted;
}

void world_events_clear(struct world *world)
{
        for (size_t i = 0; i < world->n_events; i++) {
                free(world->events[i].text);
                free(world->events[i].quoted);
        }
        /* A burst is rare: return its memory. */
        free(world->events);
        world->events = NULL;
        world->n_events = world->events_allocated = 0;
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
        WORLD_FOREACH_FLEET(world, fleet)
                FLEET_FOREACH_WORKER(fleet, worker)
                        if (worker->state != WORKER_GONE && strcmp(WORKER_ID(worker), id) == 0)
                                return worker;
        return NULL;
}

static bool is_process(pid_t pid, uint64_t start, pid_t its_pid, uint64_t its_start)
{
        return pid == its_pid && (start == 0 || start == its_start);
}

bool world_has_process(const struct world *world, pid_t pid, uint64_t start)
{
        /* A worker whose heartbeat process is not known has 0 there. */
        if (pid == 0)
                return false;
        WORLD_FOREACH_FLEET(world, fleet) {
                FLEET_FOREACH_WORKER(fleet, worker) {
                        const struct worker_process *its = &worker->process;

                        if (is_process(pid, start, its->pid, its->start) ||
                            is_process(pid, start, its->heartbeat_pid, its->heartbeat_start))
                                return true;
                }
                FLEET_FOREACH_TEMPLATE(fleet, template)
                        if (is_process(pid, start, template->pid, template->pid_start))
                                return true;
        }
        return false;
}
