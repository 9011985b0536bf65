/* SPDX-License-Identifier: MIT */
/* Finds the jobs that run for longer than job_warn_after, and tells of each once. */
#include "core/limits.h"
#include "core/observe.h"
#include "daemon/supervisor.h"
#include "io/clock.h"
#include "io/works.h"
#include <signal.h>
#include <string.h>

static bool was_told(char *const *told, const char *jid)
{
        for (; told != NULL && *told != NULL; told++)
                if (strcmp(*told, jid) == 0)
                        return true;
        return false;
}

static void free_told(char **told)
{
        for (size_t i = 0; told != NULL && told[i] != NULL; i++)
                free(told[i]);
        free(told);
}

void long_jobs_forget(struct worker_io *io)
{
        io->works = works_free(io->works);
        free_told(io->long_jobs);
        io->long_jobs = NULL;
}

/* A signal that is not caught would freeze it. */
static bool dump(const struct worker_io *io)
{
        const struct proc *proc = worker_io_beating(io);

        return proc != NULL && proc_catches_signal(proc, SIGTTIN) > 0 && proc_signal(proc, SIGTTIN) == 0;
}

static void on_works(struct job_list *lists, const char *error, void *userdata)
{
        struct worker_io *io = userdata;
        const struct fleet_settings *settings = io->worker->fleet->settings;
        usec_t realtime = clock_now(CLOCK_REALTIME), runs;
        bool asked = false, dumped = false;
        size_t n = 0;

        io->works = NULL;
        if (error != NULL || io->worker->state == WORKER_GONE)
                return;
        char **told = calloc(lists[0].n_jobs + 1, sizeof(*told));
        if (told == NULL)
                return;
        for (size_t i = 0; i < lists[0].n_jobs; i++) {
                const struct job *job = &lists[0].jobs[i];

                if (!job_is_long(job, settings->job_warn_after, realtime, &runs) ||
                    (told[n] = strdup(job->jid)) == NULL)
                        continue;
                if (was_told(io->long_jobs, told[n++]))
                        continue;
                if (!asked && settings->stuck_job_action == STUCK_JOB_DUMP)
                        dumped = dump(io);
                asked = true;
                observe_long_job(io->worker, job, runs, dumped);
                supervisor_arm_turn(io->supervisor);
        }
        free_told(io->long_jobs);
        io->long_jobs = told;
}

void long_jobs_look(struct worker *worker)
{
        const char *limits = worker->fleet->settings->job_warn_after;
        const struct link *link = worker->fleet->io;
        struct worker_io *io = worker->io;
        const char *identity = beats_identity(io->slot);

        if (limits == NULL || !limits_any(limits, LIMITS_DURATION) || identity == NULL || io->works != NULL ||
            worker->busy == 0)
                return;
        /* What fails is asked again later. */
        (void)works_read(link->redis, io->supervisor->settings->redis.namespace, &identity, 1, on_works, io,
                         &io->works);
}
