/* SPDX-License-Identifier: MIT */
/* Makes, changes and frees the fleets of a world; see the header. */
#include "model/fleets.h"
#include "model/preload.h"
#include "model/rollout.h"
#include "model/world.h"

static void fleet_free(struct fleet *fleet)
{
        FLEET_FOREACH_WORKER(fleet, worker)
                free(worker);
        free(fleet->workers);
        free(fleet);
}

struct world *world_free(struct world *world)
{
        if (!world)
                return NULL;
        WORLD_FOREACH_FLEET(world, fleet)
                fleet_free(fleet);
        free(world->fleets);
        world_events_clear(world);
        free(world);
        return NULL;
}

/* Creates the fleets that are in settings but not in the world. Returns their number, or -ENOMEM. */
static int make_fleets(const struct world *world, const struct settings *settings, struct fleet **list)
{
        int n = 0;

        for (size_t i = 0; i < settings->n_fleets; i++) {
                if (world_fleet(world, settings->fleets[i]->name))
                        continue;
                struct fleet *fleet = calloc(1, sizeof(*fleet));

                if (!fleet) {
                        while (n > 0)
                                fleet_free(list[--n]);
                        return -ENOMEM;
                }
                fleet->settings = settings->fleets[i];
                fleet->generation = 1;
                generation_begin(fleet);
                fleet->random = world->seed + (uint64_t)n;
                list[n++] = fleet;
        }
        return n;
}

int world_new(const struct settings *settings, uint64_t seed, struct world **ret)
{
        struct world *world = calloc(1, sizeof(*world));

        if (!world)
                return -ENOMEM;
        world->seed = seed;
        int r = world_reload(world, settings, NULL, 0);
        if (r < 0)
                world_free(world);
        else
                *ret = world;
        return r;
}

static void reload_fleet(struct fleet *fleet, const struct fleet_settings *new, const struct orderer *by,
                         usec_t now)
{
        const struct fleet_settings *old = fleet->settings;

        /* A scale order refers to the configured count, and lapses when that changes. */
        if (new->active_process_count != old->active_process_count)
                fleet->scale = 0;
        fleet->settings = new;
        if (!fleet_scales(fleet))
                fleet->automatic_count = 0;
        if (new->removed && !old->removed) {
                rollout_abort(fleet, "the fleet is no longer configured", by);
                event_by(by, fleet_event(fleet, EVENT_ORDER, ": no longer configured; workers are draining"));
        } else if (old->removed && !new->removed) {
                event_by(by, fleet_event(fleet, EVENT_ORDER, ": configured again"));
        }
        if (new->launch_hash != old->launch_hash)
                rollout_outdate(fleet, now);
}

int world_reload(struct world *world, const struct settings *settings, const struct orderer *by, usec_t now)
{
        struct fleet **fleets = calloc(settings->n_fleets + 1, sizeof(struct fleet *));
        size_t n = 0;

        if (!fleets)
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

                assert(new);
                fleets[n] = world->fleets[n];
                reload_fleet(fleets[n], new, by, now);
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

        WORLD_FOREACH_FLEET(world, fleet) {
                if (fleet->settings->removed && fleet->n_workers == 0 && !fleet_has_templates(fleet))
                        fleet_free(fleet);
                else
                        world->fleets[kept++] = fleet;
        }
        world->n_fleets = kept;
}
