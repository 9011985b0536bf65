/* SPDX-License-Identifier: MIT */
/* Checks workers whose heartbeats are not known against what their titles prove. */
#include "model/world.h"
#include "sim.h"

#define SEC USEC_PER_SEC
/* A title is mostly rewritten within half of this time. */
#define TITLE_IDLE_USEC (20 * SEC)

bool check_title_tells(const struct sim *sim, const struct process *process)
{
        return (process_traits(sim, process)->has_title ||
                process_traits(sim, process)->process_is_heartbeat) &&
               sim->fleets[process->fleet].link.up && process->title_read_at > sim->shell.trusted_at &&
               sim->now - process->title_read_at <= 3 * sim->shell.settings.check_interval;
}

void check_title(struct sim *sim, struct process *process, bool known, bool idle)
{
        if (known)
                process->title_read_at = sim->now;
        if (!known || !idle || process->title_idle_from <= sim->shell.trusted_at)
                process->title_idle_from = known && idle ? sim->now : 0;
}

unsigned check_title_ready(const struct sim *sim, unsigned fleet, const struct process *except)
{
        unsigned ready = 0;

        SIM_FOREACH_PROCESS(sim, process)
                ready += process->fleet == fleet && process != except && process->worker &&
                         process->worker->state == WORKER_STARTING && process->title_first_at != 0 &&
                         process->title_read_at > sim->shell.trusted_at &&
                         sim->now >= process->title_first_at +
                                             sim->shell.world->fleets[fleet]->settings->ready_after;
        return ready;
}

bool check_title_quiet(struct sim *sim, const struct process *process)
{
        bool tells = check_title_tells(sim, process);

        if (tells && !process->threads_counted && process_traits(sim, process)->has_job_threads)
                violate(sim, "P1", "%s is quieted, and not all of its job threads were seen",
                        process_name(sim, process));
        return tells;
}

void check_title_idle(struct sim *sim, const struct process *process)
{
        bool threads = process_traits(sim, process)->has_job_threads;

        if (threads && process_threads(sim, process) > 0)
                violate(sim, "P1", "%s is stopped though job threads of it are left",
                        process_name(sim, process));
        if ((threads && !process->threads_counted) || process->title_idle_from == 0 ||
            process->title_read_at - process->title_idle_from < (threads ? TITLE_IDLE_USEC : SEC))
                violate(sim, "P1", "%s is stopped though its title was not idle for long",
                        process_name(sim, process));
}
