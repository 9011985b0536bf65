/* SPDX-License-Identifier: MIT */
/* Records the jobs read from a worker's work list; see the header. */
#include "observe/observe_jobs.h"
#include "base/parse.h"
#include "base/printable.h"
#include "model/deadlines.h"
#include "model/names.h"
#include "model/worker_facts.h"
#include "model/world.h"
#include <stdio.h>
#include <string.h>

void observe_jobs(struct worker *worker, const struct job_list *jobs, usec_t oldest, usec_t now)
{
        worker->jobs.count = (unsigned)(jobs->n_jobs + job_list_unknown(jobs));
        worker->jobs.read_at = now;
        worker->jobs.oldest_at = oldest > 0 ? MAX(usec_sub(now, oldest), (usec_t)1) : 0;
        worker->jobs.classes = (struct job_classes){0};
        /* Without all jobs, the classes of some would pass for those of all. */
        if (job_list_unknown(jobs) == 0)
                (void)job_classes_count(jobs, &worker->jobs.classes);
}

void observe_long_job(struct worker *worker, const struct job *job, usec_t runs, bool dumped)
{
        char names[700], span[32];

        /* The names are untrusted. */
        snprintf(names, sizeof(names), "%.200s %.200s (queue %.200s)", job->class, job->jid, job->queue);
        printable_replace(names, strlen(names), false);
        format_duration(runs, span, sizeof(span));
        world_event(worker->fleet->world, EVENT_JOB_LONG, worker->fleet, worker,
                    "%s has been running for %s in %s (pid %d)%s", names, span, WORKER_ID(worker),
                    (int)worker_pid(worker),
                    dumped ? ". Backtraces of its threads are in the worker's log" : "");
}

void observe_cut_off(const struct worker *worker, enum reason reason, usec_t now)
{
        struct fleet *fleet = worker->fleet;
        struct cut_off cut = worker_cut_off(worker);
        char text[JOB_CLASSES_TEXT_MAX], span[FORMAT_MAX], why[FORMAT_MAX + 32] = "by order";
        /* An active worker may run other jobs by now. */
        bool known = worker->state == WORKER_QUIET && worker->jobs.classes.n > 0 &&
                     worker->jobs.read_at >= worker->orders.quiet_at &&
                     worker->heartbeat.busy <= worker->jobs.count;

        /* Other events report workers that hang or have sent no heartbeat. */
        if (worker->heartbeat.busy == 0 || now < cut.at || reason == REASON_HUNG || reason == REASON_BOOT)
                return;
        fleet->totals.jobs_cut_off[cut.word] += worker->heartbeat.busy;
        if (cut.word != CUT_ORDER)
                snprintf(why, sizeof(why), "after %s (%s)", format_duration(cut.allowed, span, sizeof(span)),
                         cut_word_name(cut.word));
        job_classes_text(&worker->jobs.classes, text, sizeof(text));
        worker_event(worker, EVENT_DRAIN_CUT, " cut off %s, %u job%s running%s%s", why,
                     worker->heartbeat.busy, worker->heartbeat.busy == 1 ? "" : "s",
                     !known                                        ? ""
                     : worker->heartbeat.busy < worker->jobs.count ? ", of "
                                                                   : ": ",
                     known ? text : "");
}
