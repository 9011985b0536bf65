/* SPDX-License-Identifier: MIT */
/* Drains that do not end: sqmgr is asked to exit and killed in the middle of its drain, twice in a row. */
#include "model/world.h"
#include "sim.h"

#define SEC USEC_PER_SEC

static void add_act(struct sim *sim, const struct act *act)
{
        size_t at = sim->n_acts++;

        for (; at > 0 && sim->acts[at - 1].at > act->at; at--)
                sim->acts[at] = sim->acts[at - 1];
        sim->acts[at] = *act;
}

void drains_open(struct sim *sim)
{
        struct rng rng = rng_fork(sim->seed, 900);
        usec_t at = rng_range(&rng, sim->begun_at + 60 * SEC, sim->calm_at - 60 * SEC);

        if (!rng_chance(&rng, 60))
                return;
        for (unsigned i = 0; i < DRAINS; i++) {
                usec_t down = rng_range(&rng, 0, SEC);

                add_act(sim, &(struct act){.kind = ACT_SHUTDOWN, .at = at, .b = down});
                at += rng_range(&rng, 100 * USEC_PER_MSEC, 5 * SEC);
                add_act(sim, &(struct act){.kind = ACT_SQMGR_KILL, .at = at, .a = down, .c = 1});
                at += rng_range(&rng, SEC, 15 * SEC);
        }
}

void drains_continued(struct sim *sim)
{
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                const struct fleet *fleet = sim->shell.world->fleets[i];

                sim->fleets[i].drained_at = 0;
                for (size_t j = 0; j < fleet->n_workers; j++)
                        if (fleet->workers[j]->state == WORKER_QUIET &&
                            fleet->workers[j]->reason == REASON_SHUTDOWN)
                                sim->fleets[i].drained_at = sim->now;
        }
}
