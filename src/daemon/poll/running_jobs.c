/* SPDX-License-Identifier: MIT */
/* Reads the running jobs of workers where needed. */
#include "daemon/poll/running_jobs.h"
#include "base/argv.h"
#include "daemon/workers/process.h"
#include "io/clock.h"
#include "model/world.h"
#include "observe/culprits.h"
#include "observe/observe.h"
#include "settings/limits.h"

/* Entries are bounded: a server may hold long ones. The ids are in the first 42 bytes. */
#define ENTRY_KEPT_MAX 64

static bool was_reported(char *const *reported, const char *jid)
{
        for (; reported && *reported; reported++)
                if (strcmp(*reported, jid) == 0)
                        return true;
        return false;
}

static void report_long_jobs(struct process *process, const struct job_list *list, usec_t realtime)
{
        const struct fleet_settings *settings = process->worker->fleet->settings;
        usec_t runs;
        size_t n = 0;

        if (!settings->job_warn_after)
                return;
        char **reported = calloc(list->n_jobs + 1, sizeof(*reported));
        if (!reported)
                return;
        for (size_t i = 0; i < list->n_jobs; i++) {
                const struct job *job = &list->jobs[i];

                if (!job_is_long(job, settings->job_warn_after, realtime, &runs) ||
                    !(reported[n] = strdup(job->jid)))
                        continue;
                if (was_reported(process->long_jobs, reported[n++]))
                        continue;
                observe_long_job(process->worker, job, runs);
                wakeup_arm(process->runtime->wakeup);
        }
        argv_free(process->long_jobs);
        process->long_jobs = reported;
}

bool running_jobs_may_be_cut_off(const struct worker *worker)
{
        return worker->fleet->settings->traits->drain_remedy &&
               (worker->state == WORKER_QUIET || worker->state == WORKER_STOPPING);
}

/* Keeps the entries of a reading. A reading that began before the drain has none. Of a later one with fewer
 * jobs, the others have ended or were released: the list before it has them all. */
static void keep_entries(struct process *process, const struct job_list *list)
{
        size_t n = MIN(list->n_jobs, (size_t)QUERY_RELEASED_MAX);

        if (!running_jobs_may_be_cut_off(process->worker) || (n > 0 && !list->jobs[0].entry))
                return;
        for (size_t i = 0; process->drained_jobs && process->drained_jobs[i]; i++)
                if (i == n)
                        return;
        char **entries = calloc(n + 1, sizeof(*entries));
        if (!entries)
                return;
        for (size_t i = 0; i < n; i++) {
                entries[i] = strndup(list->jobs[i].entry, ENTRY_KEPT_MAX);
                if (!entries[i])
                        break;
        }
        argv_free(process->drained_jobs);
        process->drained_jobs = entries;
}

void running_jobs_observe(struct worker *worker, const struct job_list *list, bool culprits)
{
        usec_t now = clock_now(CLOCK_MONOTONIC), realtime = clock_now(CLOCK_REALTIME);

        observe_jobs(worker, list, job_list_oldest(list, realtime), now);
        if (culprits) {
                culprits_observe(worker->fleet, worker, CULPRITS_MEMORY, list, now);
                wakeup_arm(worker->handle->runtime->wakeup);
        }
        report_long_jobs(worker->handle, list, realtime);
}

static void on_running_jobs(struct answer *answer, void *userdata)
{
        struct process *process = userdata;
        struct worker *worker = process->worker;
        const struct error_report *error;
        struct job_list *lists = link_running_jobs(answer, 1, &error);

        process->running_jobs = NULL;
        if (error || worker->state == WORKER_GONE)
                return;
        running_jobs_observe(worker, &lists[0], process->running_jobs_culprits);
        keep_entries(process, &lists[0]);
}

/* Errors are ignored: nothing is reported, and periodic readings are repeated later. */
static void read_list(struct worker *worker, bool culprits)
{
        struct process *process = worker->handle;
        const char *identity = process_identity(process);
        const struct running_jobs_request request = {
                .identities = &identity, .n = 1, .with_entries = running_jobs_may_be_cut_off(worker)};

        process->running_jobs_culprits = culprits;
        if (identity && link_read_running_jobs(worker->fleet->link, &request, on_running_jobs, process) >= 0)
                process->running_jobs = worker->fleet->link->reader;
}

void running_jobs_poll(struct worker *worker)
{
        const char *limits = worker->fleet->settings->job_warn_after;
        const struct process *process = worker->handle;

        bool drains = worker->state == WORKER_QUIET || worker->state == WORKER_STOPPING;
        bool limited = limits && limits_any(limits, LIMITS_DURATION);

        if (worker->fleet->settings->traits->has_work_list && (drains || limited) && !process->running_jobs &&
            worker->heartbeat.busy > 0)
                read_list(worker, false);
}

void running_jobs_tick(const struct world *world)
{
        WORLD_FOREACH_FLEET(world, fleet)
                FLEET_FOREACH_WORKER(fleet, worker) {
                        const struct process *process = worker->handle;

                        /* A reading in progress may be older than the awaited heartbeat. */
                        if (!fleet->settings->traits->has_work_list || !process || !process->slot ||
                            process->running_jobs)
                                continue;
                        if (culprits_take(worker))
                                read_list(worker, true);
                        else if (running_jobs_may_be_cut_off(worker) && !process->drained_jobs &&
                                 worker->heartbeat.busy > 0)
                                read_list(worker, false);
                }
}
