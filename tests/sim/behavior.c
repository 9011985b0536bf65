/* SPDX-License-Identifier: MIT */
/* How the workers of each framework react to signals and what they report: the facts, without chance. */
#include "frameworks/table.h"
#include "sim.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define MSEC USEC_PER_MSEC
#define SEC  USEC_PER_SEC
/* Younger connections prove nothing: see BULLMQ_SETTLED_SECONDS. */
#define SETTLED_USEC (5 * SEC)

static const struct behavior rows[] = {
        {
                .framework = "sidekiq",
                .weight = 400,
                .quiet_signal = SIGTSTP,
                .stop_signal = SIGTERM,
                .wakes = true,
                .jobs_max = JOBS_MAX,
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
                .jobs_max = JOBS_MAX,
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
                .quiet_signal = SIGTSTP,
                .quiet_by_query = true,
                .unheard = 10,
                .stop_signal = SIGTERM,
                .stop_waits = true,
                .silent_at_stop = true,
                .lists_fetches = true,
                .jobs_max = JOBS_MAX,
                .heartbeat_idle = 2 * SEC,
                .heartbeat_busy = 2 * SEC,
                .record_expiry = 60 * SEC,
        },
        {
                /* The reader's view of connections and active jobs: a job counts as it is taken, and a worker
                 * that waits for jobs speaks every few seconds. A quiet worker without jobs does not. */
                .framework = "bullmq",
                .weight = 100,
                .quiet_signal = SIGTSTP,
                .stop_signal = SIGTERM,
                .wakes = true,
                .stop_waits = true,
                .uncaught = 25,
                .jobs_max = JOBS_MAX,
                .heartbeats_at_change = true,
                .counts_fetches = true,
                .observed = true,
                .waits = 5 * SEC,
                .limited = 50,
                .heartbeat_idle = 5 * SEC,
                .heartbeat_busy = 15 * SEC,
                .record_expiry = 60 * SEC,
        },
        {
                /* A row outlasts its worker until another process of Solid Queue removes it. */
                .framework = "solid_queue",
                .weight = 120,
                .stop_signal = SIGTERM,
                .stop_waits = true,
                .jobs_max = JOBS_MAX,
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
                .jobs_max = JOBS_MAX,
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
                .jobs_max = JOBS_MAX,
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
        process->unheard = behavior->unheard > 0 && rng_chance(&rng, behavior->unheard * 10);
        process->bare = rng_chance(&rng, behavior->bare * 10);
        process->titleless =
                rng_chance(&rng, behavior->titleless * 10) || sim->fleets[process->fleet].untitled;
        process->reports_start = behavior->reports_start && rng_chance(&rng, 500);
        /* A worker that ignores its only signal would drain forever. */
        if (process->uncaught || process->unheard)
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

/* The worker may be waiting for a job by a command that it cannot take back. */
static void wait_once_more(const struct sim *sim, struct process *process, usec_t waits)
{
        struct rng *rng = &process->rng;

        if (waits == 0 || !process->booted || process->stopping || sim->now < process->limited_until)
                return;
        process->waits_until = sim->now + rng_range(rng, 0, waits);
        if (rng_chance(rng, 300))
                process->job_at = MIN(process->job_at, rng_range(rng, sim->now, process->waits_until));
}

/* Quiets the worker. Endless jobs notice that and end. */
void behavior_become_quiet(struct sim *sim, struct process *process)
{
        process->quiet_from = USEC_INFINITY;
        if (process->quiet)
                return;
        process->quiet = true;
        process->quiet_since = sim->now;
        wait_once_more(sim, process, process_behavior(sim, process)->waits);
        process->threads_gone_at = sim->now + rng_range(&process->rng, 100 * MSEC, 5 * SEC);
        for (unsigned i = 0; i < process->n_jobs; i++)
                if (process->job_end[i] == USEC_INFINITY)
                        process->job_end[i] = interrupt_end(process->job_end[i],
                                                            sim->now + rng_range(&process->rng, 0, 20 * SEC));
}

bool behavior_seems_quiet(const struct sim *sim, const struct process *process)
{
        const struct behavior *behavior = process_behavior(sim, process);
        usec_t waited = process->records[0].written_at + behavior->waits;

        if (sim->now < process->linked_at + SETTLED_USEC)
                return false;
        if (process->quiet)
                return sim->now >= process->waits_until;
        return sim->now < process->limited_until || process_jobs(process) == behavior->jobs_max ||
               (sim->now < process->hang_until && sim->now > waited);
}

/* The worker handles its stop signal. */
void behavior_stop(struct sim *sim, struct process *process)
{
        const struct behavior *behavior = process_behavior(sim, process);

        process->term_from = USEC_INFINITY;
        if (process->deaf)
                return;
        process->stopping = true;
        process->waits_until = 0;
        if (behavior->fetch_is_lost)
                process->fetched_until = 0;
        behavior_become_quiet(sim, process);
        process->stop_by = behavior->stop_waits ? USEC_INFINITY : sim->now + process->release.shutdown_usec;
}

/* Delivers a signal to a worker that has set no handler yet. */
static void signal_booting(const struct behavior *behavior, struct process *process, int signo, usec_t soon)
{
        /* Before the worker has booted, a request reaches nobody. */
        if (signo == SIGTSTP && behavior->quiet_by_query)
                return;
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
