/* SPDX-License-Identifier: MIT */
/* Schedules drains in which sqmgr is killed, and checks what follows from them. */
#include "model/idle_proof.h"
#include "model/world.h"
#include "sim.h"

#define SEC USEC_PER_SEC

void drains_open(struct sim *sim)
{
        struct rng rng = rng_fork(sim->seed, 900);
        usec_t at = rng_range(&rng, sim->begun_at + 60 * SEC, sim->calm_at - 60 * SEC);

        if (!rng_chance(&rng, 60))
                return;
        for (unsigned i = 0; i < DRAINS; i++) {
                usec_t down = rng_range(&rng, 0, SEC);

                act_add(sim, &(struct act){.kind = ACT_SHUTDOWN, .at = at, .b = down});
                at += rng_range(&rng, 100 * USEC_PER_MSEC, 5 * SEC);
                act_add(sim, &(struct act){.kind = ACT_SQMGR_KILL, .at = at, .a = down, .c = 1});
                at += rng_range(&rng, SEC, 15 * SEC);
        }
}

void drains_continued(struct sim *sim)
{
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                const struct fleet *fleet = sim->shell.world->fleets[i];

                sim->fleets[i].drained_at = 0;
                FLEET_FOREACH_WORKER(fleet, worker)
                        if (worker->state == WORKER_QUIET && worker->reason == REASON_SHUTDOWN)
                                sim->fleets[i].drained_at = sim->now;
        }
}

/* True if its heartbeats show that the worker is idle, and neither title nor threads deny it. */
static bool is_shown_idle(const struct sim *sim, const struct process *process)
{
        const struct worker *worker = process->worker;
        usec_t stale = check_stale_usec(sim, process->fleet);

        return worker && worker->state == WORKER_QUIET && worker->reason == REASON_SHUTDOWN &&
               process->runner_alive && process->idle_row >= 2 && process->trusted_reads > 0 &&
               sim->now - process->changed_at <= stale && process->read_list_empty && process->lied_at == 0 &&
               !process->native_thread && process_threads(sim, process) == 0 &&
               worker->orders.signal_error == 0 && !worker_contradicted(worker);
}

void drains_check(struct sim *sim, unsigned number)
{
        const struct fleet_sim *model = &sim->fleets[number];
        /* A doubt about time, or another connection, has the heartbeats read anew. */
        bool calm = model->drained_at != 0 && model->link.up && sim->shell.trusted_at <= model->drained_at &&
                    model->link.up_at <= model->drained_at + SEC && sim->now >= sim->proc_fails_until + SEC &&
                    !check_is_unsure(sim);

        SIM_FOREACH_PROCESS(sim, process) {
                if (process->fleet != number)
                        continue;
                if (!calm || !is_shown_idle(sim, process))
                        process->idle_at = 0;
                else if (process->idle_at == 0)
                        process->idle_at = sim->now;
                else if (sim->now > process->idle_at + 2 * SEC)
                        violate(sim, "P2", "%s keeps its place though it is idle",
                                process_name(sim, process));
        }
}
