/* SPDX-License-Identifier: MIT */
/* How the workers of each framework react to signals and what they report: the facts, without chance. */
#include "frameworks/table.h"
#include "sim.h"
#include <signal.h>

#define MSEC USEC_PER_MSEC
#define SEC  USEC_PER_SEC

static const struct behavior rows[] = {
        {
                .framework = "sidekiq",
                .weight = 400,
                .quiet_signal = SIGTSTP,
                .stop_signal = SIGTERM,
                .wakes = true,
                .jobs_max = SIM_JOBS_MAX,
                .quiet_read_late = true,
                .reports_birth = true,
                .repeats_birth = true,
                .record_expiry = 60 * SEC,
                .shows_boot = true,
        },
        {
                .framework = "native",
                .weight = 200,
                .quiet_signal = SIGTSTP,
                .stop_signal = SIGTERM,
                .stop_waits = true,
                .uncaught = 25,
                .jobs_max = SIM_JOBS_MAX,
                .heartbeats_at_change = true,
                .counts_fetches = true,
                .reports_start = true,
                .record_expiry = 60 * SEC,
        },
        {
                .framework = "rq",
                .weight = 150,
                .stop_signal = SIGTERM,
                .stop_waits = true,
                .second_kills = true,
                .fetch_is_lost = true,
                .jobs_max = 1,
                .job_is_child = true,
                .heartbeats_at_change = true,
                .reports_birth = true,
                .heartbeat_idle = 405 * SEC,
                .heartbeat_busy = 30 * SEC,
                .record_expiry = 480 * SEC,
                .shows_boot = true,
                .title_may_lack = true,
                .titleless = 30,
        },
        {
                .framework = "resque",
                .weight = 100,
                .quiet_signal = SIGUSR2,
                .stop_signal = SIGQUIT,
                .cut_off_signal = SIGTERM,
                .stop_waits = true,
                .jobs_max = 1,
                .job_is_child = true,
                .heartbeats_at_change = true,
                .heartbeat_idle = 60 * SEC,
                .heartbeat_busy = 60 * SEC,
                .record_expiry = 300 * SEC,
                .shows_boot = true,
                /* A worker without a title could never be seen to be paused. */
                .title_may_lack = true,
        },
        {
                .framework = "celery",
                .weight = 150,
                .reports_turns = true,
                .quiet_signal = SIGTSTP,
                .stop_signal = SIGTERM,
                .stop_waits = true,
                .jobs_max = SIM_JOBS_MAX,
                .heartbeats_at_change = true,
                .counts_fetches = true,
                .reports_start = true,
                .heartbeat_idle = 2 * SEC,
                .heartbeat_busy = 2 * SEC,
                .bare = 30,
        },
        {
                .framework = "bullmq",
                .weight = 100,
                .quiet_signal = SIGTSTP,
                .stop_signal = SIGTERM,
                .wakes = true,
                .stop_waits = true,
                .jobs_max = SIM_JOBS_MAX,
                .heartbeats_at_change = true,
                .counts_fetches = true,
                .reports_start = true,
                .heartbeat_idle = 2 * SEC,
                .heartbeat_busy = 2 * SEC,
                .bare = 30,
        },
        {
                /* A row outlasts its worker until another process of Solid Queue removes it. */
                .framework = "solid_queue",
                .weight = 120,
                .stop_signal = SIGTERM,
                .stop_waits = true,
                .jobs_max = SIM_JOBS_MAX,
                .counts_fetches = true,
                .reports_birth = true,
                .database = true,
                .heartbeat_idle = 60 * SEC,
                .heartbeat_busy = 60 * SEC,
                .record_expiry = 3600 * SEC,
        },
        {
                .framework = "good_job",
                .weight = 80,
                .stop_signal = SIGTERM,
                .stop_waits = true,
                .jobs_max = SIM_JOBS_MAX,
                .counts_fetches = true,
                .reports_birth = true,
                .database = true,
                .locked = true,
                .heartbeat_idle = 33 * SEC,
                .heartbeat_busy = 33 * SEC,
                .record_expiry = 3600 * SEC,
        },
        {
                .framework = "plain",
                .weight = 150,
                .stop_signal = SIGTERM,
                .stop_waits = true,
                .second_kills = true,
                .bare = 30,
                .jobs_max = SIM_JOBS_MAX,
        },
};

static const struct behavior *find_row(const char *framework)
{
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                if (strcmp(rows[i].framework, framework) == 0)
                        return &rows[i];
        fprintf(stderr, "tests/sim/behavior.c does not say what workers of '%s' do\n", framework);
        abort();
}

const struct behavior *behavior_choose(struct rng *rng, const struct traits **ret_traits)
{
        unsigned weight = 0;
        size_t i = 0;

        for (i = 0; framework_traits[i]; i++)
                weight += find_row(framework_traits[i]->name)->weight;
        weight = (unsigned)rng_range(rng, 0, weight - 1);
        for (i = 0; weight >= find_row(framework_traits[i]->name)->weight; i++)
                weight -= find_row(framework_traits[i]->name)->weight;
        *ret_traits = framework_traits[i];
        return find_row(framework_traits[i]->name);
}

const struct behavior *process_behavior(const struct sim *sim, const struct process *process)
{
        return sim->fleets[process->fleet].behavior;
}

void behavior_give(const struct sim *sim, struct process *process)
{
        const struct behavior *behavior = process_behavior(sim, process);
        struct rng rng = rng_fork(sim->seed, 3000000 + process->serial);

        process->uncaught = rng_chance(&rng, behavior->uncaught * 10);
        process->bare = rng_chance(&rng, behavior->bare * 10) &&
                        (!process_traits(sim, process)->shim || process->elsewhere);
        process->titleless =
                rng_chance(&rng, behavior->titleless * 10) || sim->fleets[process->fleet].untitled;
        process->reports_start = behavior->reports_start && rng_chance(&rng, 500);
        /* Its shim, which catches the quiet signal, is not loaded. */
        process->uncaught |= evidence_lacks_shim(sim, process);
        /* A worker that ignores its only signal would drain forever. */
        if (process->uncaught)
                process->deaf = false;
        if (!behavior->shows_boot || process->titleless)
                process->titled = false;
        if (behavior->job_is_child && !process->titled)
                process->leftover = process->detached = rng_chance(&rng, 200);
        process->takes_none = rng_chance(&rng, 60);
        /* Without heartbeats, a leftover process cannot be distinguished from the worker. */
        if (fleet_is_bare(sim, process->fleet))
                process->leftover = false;
}

/* Quiets the worker. Endless jobs notice that and end. */
void behavior_become_quiet(struct sim *sim, struct process *process)
{
        process->quiet_from = USEC_INFINITY;
        if (process->quiet)
                return;
        process->quiet = true;
        process->threads_gone_at = sim->now + rng_range(&process->rng, 100 * MSEC, 5 * SEC);
        for (unsigned i = 0; i < process->n_jobs; i++)
                if (process->job_end[i] == USEC_INFINITY)
                        process->job_end[i] = interrupt_end(process->job_end[i],
                                                            sim->now + rng_range(&process->rng, 0, 20 * SEC));
}

/* The worker handles its stop signal. */
void behavior_stop(struct sim *sim, struct process *process)
{
        const struct behavior *behavior = process_behavior(sim, process);

        process->term_from = USEC_INFINITY;
        if (process->deaf)
                return;
        process->stopping = true;
        if (behavior->fetch_is_lost)
                process->fetched_until = 0;
        behavior_become_quiet(sim, process);
        process->stop_by = behavior->stop_waits ? USEC_INFINITY : sim->now + process->release.shutdown_usec;
}

/* Delivers a signal to a worker that has set no handler yet. */
static void signal_booting(const struct behavior *behavior, struct process *process, int signo, usec_t soon)
{
        if (signo == SIGTSTP) {
                process->frozen = true;
                return;
        }
        /* The signal ends the worker, once it is not frozen any more. */
        if (behavior->wakes)
                process->frozen = false;
        if (!process->deaf)
                process->crash_at = soon;
}

void behavior_signal(struct sim *sim, struct process *process, int signo)
{
        const struct behavior *behavior = process_behavior(sim, process);
        usec_t soon = sim->now + rng_range(&process->rng, MSEC, 30 * MSEC);
        bool stops = signo == behavior->stop_signal || signo == behavior->cut_off_signal;

        process->knows_end |= stops;
        if (!process->booted) {
                signal_booting(behavior, process, signo, soon);
        } else if (!stops) {
                process->quiet_from = MIN(process->quiet_from, soon);
        } else if (process->bare || signo == behavior->cut_off_signal) {
                process->crash_at = soon;
        } else if (!process->stopping) {
                process->term_from = MIN(process->term_from, soon);
        } else if (behavior->second_kills) {
                process->n_jobs = 0;
                process->fetched_until = 0;
                process->exit_at = MIN(process->exit_at, soon);
        }
}
