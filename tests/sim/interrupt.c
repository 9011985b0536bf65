/* SPDX-License-Identifier: MIT */
/* Jobs that may be interrupted: which they are, and the readings of work lists that name them. */
#include "observe/observe_jobs.h"
#include "sim.h"

void interrupt_open(struct sim *sim)
{
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                struct rng rng = rng_fork(sim->seed, 400 + i);

                for (unsigned k = 0; k < ELEMENTSOF(sim->fleets[i].settings); k++) {
                        struct fleet_settings *settings = &sim->fleets[i].settings[k];

                        if (settings->traits->resumes_jobs && rng_chance(&rng, 300))
                                settings->interruptible = (char *)"ImportJob ExportJob";
                }
        }
}

/* By the end of the job: a number that nothing else depends on. */
static bool is_plain(usec_t end)
{
        return end % 10 < 3;
}

usec_t interrupt_end(usec_t before, usec_t end)
{
        return end + 10 - end % 10 + before % 10;
}

unsigned interrupt_plain_jobs(const struct process *process)
{
        unsigned n = process->fetched_until != 0 && is_plain(process->fetched_job_end);

        for (unsigned i = 0; i < process->n_jobs; i++)
                n += is_plain(process->job_end[i]);
        return n;
}

void interrupt_look(struct sim *sim, struct worker *worker)
{
        const struct process *process = worker->handle;
        struct job jobs[JOBS_OF_WORKER + 1] = {0};
        struct job_list list = {.jobs = jobs, .n_jobs = MIN(process->copied_busy, ELEMENTSOF(jobs))};

        if (worker->state != WORKER_QUIET || worker->heartbeat.busy == 0 ||
            !sim->fleets[process->fleet].link.up || !worker->fleet->settings->interruptible)
                return;
        for (size_t i = 0; i < list.n_jobs; i++)
                jobs[i].class = (char *)(i < process->copied_plain ? "MailJob"
                                         : i % 2 == 0              ? "ExportJob"
                                                                   : "ImportJob");
        observe_jobs(worker, &list, 0, sim->now);
}
