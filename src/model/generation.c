/* SPDX-License-Identifier: MIT */
/* The generations of a fleet; see the header. */
#include "model/generation.h"
#include "model/worker_facts.h"
#include <string.h>

static bool is_used(const struct fleet *fleet, uint64_t generation)
{
        FLEET_FOREACH_WORKER(fleet, worker)
                if (worker->state != WORKER_GONE && worker->generation == generation)
                        return true;
        FLEET_FOREACH_TEMPLATE(fleet, template)
                if (template_is_alive(template) && template->generation == generation)
                        return true;
        return false;
}

void generation_begin(struct fleet *fleet)
{
        fleet->newest_generation = MAX(fleet->newest_generation, fleet->generation);
        memset(fleet->launches, 0, sizeof(fleet->launches));
        fleet->launches[0] = (struct launch){fleet->generation, fleet->settings->launch_hash};
}

void generation_restart(struct fleet *fleet)
{
        fleet->generation = MAX(fleet->newest_generation, fleet->generation) + 1;
        generation_begin(fleet);
}

void generation_return(struct fleet *fleet, uint64_t generation)
{
        fleet->newest_generation = MAX(fleet->newest_generation, fleet->generation);
        fleet->generation = generation;
        generation_begin(fleet);
}

/* Returns a free entry. If there is none, drops the oldest one without workers and templates, or else the
 * oldest. The entry of the last restart is never dropped. */
static struct launch *launch_place(struct fleet *fleet)
{
        struct launch *end = fleet->launches + LAUNCHES_KEPT, *at = fleet->launches + 1;

        for (struct launch *each = at; each < end; each++)
                if (each->generation == 0)
                        return each;
        while (at < end - 1 && is_used(fleet, at->generation))
                at++;
        if (is_used(fleet, at->generation))
                at = fleet->launches + 1;
        memmove(at, at + 1, (size_t)(end - at - 1) * sizeof(*at));
        return end - 1;
}

void generation_follow_settings(struct fleet *fleet)
{
        uint64_t hash = fleet->settings->launch_hash;

        fleet->boot_heard = fleet->boot_in_proc = false;
        /* Clients recognize a running restart by its generation, which must not become lower. */
        if (fleet->rollout.state == ROLLOUT_RUNNING) {
                generation_restart(fleet);
                return;
        }
        FOREACH_ELEMENT(launch, fleet->launches)
                if (launch->generation != 0 && launch->launch_hash == hash) {
                        fleet->generation = launch->generation;
                        return;
                }
        fleet->generation = ++fleet->newest_generation;
        *launch_place(fleet) = (struct launch){fleet->generation, hash};
}

void generation_observe(struct fleet *fleet, uint64_t generation)
{
        if (generation <= fleet->newest_generation)
                return;
        /* A restart that the state does not tell of has ended a return. */
        fleet->rollout.returned = false;
        /* The restart that is done was an earlier one. */
        if (fleet->rollout.state == ROLLOUT_DONE)
                fleet->rollout.state = ROLLOUT_NONE;
        fleet->generation = generation;
        generation_begin(fleet);
}

uint64_t generation_shown(const struct fleet *fleet)
{
        uint64_t shown = fleet->launches[0].generation;

        if (fleet->rollout.state == ROLLOUT_RUNNING || is_used(fleet, fleet->generation))
                return fleet->generation;
        FOREACH_ELEMENT(launch, fleet->launches)
                if (is_used(fleet, launch->generation))
                        shown = MAX(shown, launch->generation);
        return shown;
}

static bool precedes_restart(const struct worker *worker)
{
        return worker->generation < worker->fleet->launches[0].generation;
}

bool generation_is_replaced(const struct worker *worker)
{
        enum rollout_state state = worker->fleet->rollout.state;

        return state == ROLLOUT_RUNNING ? worker_outdated(worker)
                                        : state == ROLLOUT_DONE && precedes_restart(worker);
}

unsigned generation_outdated_by_reload(const struct fleet *fleet)
{
        unsigned n = 0;

        /* A return has outdated the workers of later generations. */
        if (fleet->rollout.returned)
                return 0;
        FLEET_FOREACH_WORKER(fleet, worker) {
                if (worker->state > WORKER_ACTIVE || !worker_outdated(worker))
                        continue;
                if (precedes_restart(worker))
                        return 0;
                n++;
        }
        return n;
}
