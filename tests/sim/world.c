/* SPDX-License-Identifier: MIT */
/* The loop of the world: runs the step that is due next, until everything has settled in the calm. */
#include "sim.h"

/* How long nothing may change once everything has settled. */
#define STILL_USEC (5 * USEC_PER_MIN)
/* Dead processes are kept as long as their heartbeat may be read. */
#define REMEMBERED_USEC (2 * USEC_PER_MIN)
/* How long a leftover process of a job lasts. */
#define LEFTOVER_USEC (20 * USEC_PER_MIN)

static void forget_dead(struct sim *sim)
{
        size_t kept = 0;

        SIM_FOREACH_PROCESS(sim, process) {
                bool known = process->worker || process->as_template.template ||
                             process->exit_report_at != USEC_INFINITY;
                usec_t remembered = process->leftover ? LEFTOVER_USEC : REMEMBERED_USEC;

                if (known || (process->left_behind ? !!sim->shell.adoption
                                                   : process_is_alive(process) ||
                                                             sim->now < process->died_at + remembered))
                        sim->processes[kept++] = process;
                else
                        free(process);
        }
        sim->n_processes = kept;
}

static usec_t next_at(const struct sim *sim)
{
        usec_t at = sim->calm ? sim->end_at : sim->calm_at;

        if (sim->next_act < sim->n_acts)
                at = MIN(at, sim->acts[sim->next_act].at);
        SIM_FOREACH_PROCESS(sim, process)
                at = MIN(at, process->next_at);
        at = MIN(at, clones_next_at(sim));
        return MAX(sim->now, MIN(at, shell_next_at(sim)));
}

static void step(struct sim *sim)
{
        while (sim->next_act < sim->n_acts && sim->acts[sim->next_act].at <= sim->now) {
                const struct act *act = &sim->acts[sim->next_act++];

                if (!act->left_out)
                        act_apply(sim, act);
        }
        if (!sim->calm && sim->now >= sim->calm_at) {
                report(sim, "calm: nothing goes wrong from now on");
                act_calm(sim);
        }
        SIM_FOREACH_PROCESS(sim, process)
                if (process->next_at <= sim->now)
                        process_step(sim, process);
        clones_step(sim);
        process_oom(sim);
        if (shell_next_at(sim) <= sim->now)
                shell_step(sim);
}

static void move(struct sim *sim, usec_t now)
{
        sim->same = now == sim->now ? sim->same + 1 : 0;
        if (sim->same > 10000)
                violate(sim, "liveness", "time stands still");
        sim->now = now;
        if (sim->now >= sim->end_at)
                return;
        step(sim);
        if (sim->now >= sim->swept_at + USEC_PER_MIN) {
                forget_dead(sim);
                sim->swept_at = sim->now;
        }
}

void sim_run(struct sim *sim)
{
        usec_t looked_at = 0;

        while (!sim->broken) {
                move(sim, next_at(sim));
                if (sim->now >= sim->end_at) {
                        check_settled(sim, true);
                        return;
                }
                if (!sim->calm || sim->now < looked_at + 10 * USEC_PER_SEC ||
                    sim->now < sim->calm_at + 60 * USEC_PER_SEC)
                        continue;
                looked_at = sim->now;
                if (sim->settled_at == 0 && check_settled(sim, false)) {
                        report(sim, "all has settled");
                        sim->settled_at = sim->now;
                } else if (sim->settled_at != 0 && sim->now >= sim->settled_at + STILL_USEC) {
                        return;
                }
        }
}
