/* SPDX-License-Identifier: MIT */
/* Records the jobs of a worker; see the header. */
#include "observe/observe_jobs.h"
#include "base/parse.h"
#include "base/printable.h"
#include "base/text.h"
#include "model/deadlines.h"
#include "model/fleet.h"
#include "model/names.h"
#include "model/worker_facts.h"
#include "model/world.h"
#include <stdio.h>
#include <string.h>

static bool is_interruptible(const struct fleet_settings *settings, const struct job *job)
{
        size_t length = strlen(job->class);

        for (const char *at = settings->interruptible; at && length > 0; at += strcspn(at, " \t")) {
                at += strspn(at, " \t");
                if (*at == '\0')
                        return false;
                if (strcspn(at, " \t") == length && memcmp(at, job->class, length) == 0)
                        return true;
        }
        return false;
}

/* Counts the heartbeats since the quiet with which all jobs are interruptible. */
static void observe_interruptible(struct worker *worker, const struct job_list *jobs)
{
        bool all = worker->state == WORKER_QUIET && worker->heartbeat.not_quiet_count == 0 &&
                   worker->heartbeat.after != 0 && worker->heartbeat.after >= worker->orders.quiet_at &&
                   !worker->heartbeat.ambiguous && !worker->heartbeat.hung && jobs->n_jobs > 0 &&
                   jobs->n_jobs == worker->heartbeat.busy && job_list_unknown(jobs) == 0;

        for (size_t i = 0; all && i < jobs->n_jobs; i++)
                all = is_interruptible(worker->fleet->settings, &jobs->jobs[i]);
        /* Another process of the worker may have been quieted since. */
        if (!all || worker->jobs.read_at < worker->orders.quiet_at)
                worker->jobs.interruptible_count = 0;
        if (!all)
                return;
        if (worker->jobs.interruptible_count == 0 ||
            worker->jobs.interruptible_heartbeat != worker->heartbeat.written_usec) {
                worker->jobs.interruptible_count++;
                worker->jobs.interruptible_heartbeat = worker->heartbeat.written_usec;
        }
}

void observe_jobs(struct worker *worker, const struct job_list *jobs, usec_t oldest, usec_t now)
{
        observe_interruptible(worker, jobs);
        worker->jobs.count = (unsigned)(jobs->n_jobs + job_list_unknown(jobs));
        worker->jobs.read_at = now;
        worker->jobs.oldest_at = oldest > 0 ? MAX(usec_sub(now, oldest), (usec_t)1) : 0;
        worker->jobs.classes = (struct job_classes){0};
        /* Without all jobs, the classes of some would pass for those of all. */
        if (job_list_unknown(jobs) == 0)
                (void)job_classes_count(jobs, &worker->jobs.classes);
}

void observe_long_job(struct worker *worker, const struct job *job, usec_t runs)
{
        char names[700], span[32];

        /* The names are untrusted. */
        snprintf(names, sizeof(names), "%.200s %.200s", job->class, job->jid);
        if (job->queue[0] != '\0')
                text_append(names, sizeof(names), " (queue %.200s)", job->queue);
        printable_replace(names, strlen(names), false);
        format_duration(runs, span, sizeof(span));
        world_event(worker->fleet->world, EVENT_JOB_LONG, worker->fleet, worker,
                    "%s has been running for %s in %s (pid %d)", names, span, WORKER_ID(worker),
                    (int)worker_pid(worker));
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
                     worker->heartbeat.busy, plural(worker->heartbeat.busy),
                     !known                                        ? ""
                     : worker->heartbeat.busy < worker->jobs.count ? ", of "
                                                                   : ": ",
                     known ? text : "");
}

void observe_outcomes(struct worker *worker, const struct heartbeat *heartbeat, usec_t now)
{
        const struct worker_outcomes *before = &worker->outcomes, *outcomes = &heartbeat->outcomes;

        /* Sidekiq's counts follow its heartbeat, whose time they do not change. */
        if ((!outcomes->known && !before->known) || heartbeat->sent_usec < worker->heartbeat.written_usec)
                return;
        /* A lower count is that of another process. */
        if (outcomes->known)
                latency_count(&worker->fleet->work,
                              before->known ? usec_sub(outcomes->processed, before->processed) : 0, now);
        worker->outcomes = *outcomes;
}
