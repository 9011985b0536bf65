/* SPDX-License-Identifier: MIT */
/* Evidence of a worker that the simulator gives to the core: /proc and the worker's record, by the traits of
 * its framework. */
#include "model/deadlines.h"
#include "observe/observe.h"
#include "sim.h"

#define SEC USEC_PER_SEC

bool fleet_is_local(const struct sim *sim, unsigned fleet)
{
        return !fleet_settings_need_server(&sim->fleets[fleet].settings[0]);
}

bool fleet_is_bare(const struct sim *sim, unsigned fleet)
{
        return !fleet_settings_write_heartbeats(&sim->fleets[fleet].settings[0]);
}

bool evidence_denies_boot(const struct sim *sim, const struct process *process)
{
        const struct behavior *behavior = process_behavior(sim, process);

        return behavior->shows_boot && !behavior->title_may_lack && !sim->fleets[process->fleet].untitled;
}

bool evidence_booted(const struct sim *sim, const struct process *process)
{
        return process->booted && process->runner_alive && process_behavior(sim, process)->shows_boot &&
               !process->titleless;
}

bool evidence_lacks_shim(const struct sim *sim, const struct process *process)
{
        return process->elsewhere && process_traits(sim, process)->shim;
}

bool evidence_catches(const struct process *process)
{
        return process->booted && !process->uncaught;
}

bool evidence_title(const struct sim *sim, const struct process *process, unsigned *ret_busy, bool *ret_quiet)
{
        const struct traits *traits = process_traits(sim, process);

        *ret_busy = process->title_busy;
        *ret_quiet = process->title_quiet;
        if (!evidence_booted(sim, process))
                return false;
        if (traits->has_title)
                return true;
        /* The title is set when a job begins or ends. A paused worker sets it when it would take the next
         * job. */
        *ret_busy = process->n_jobs;
        *ret_quiet = traits->title_completes && process->quiet && process_jobs(process) == 0 &&
                     sim->now >= process->threads_gone_at;
        return true;
}

void evidence_complete(struct sim *sim, const struct process *process, struct heartbeat *heartbeat)
{
        const struct traits *traits = process_traits(sim, process);
        unsigned busy = 1;
        bool quiet = false;

        if (traits->process_is_heartbeat)
                heartbeat->sent_usec = sim->now;
        if (!traits->title_completes)
                return;
        if ((sim->now < sim->proc_fails_until && rng_chance(&sim->rng, 300)) ||
            !evidence_title(sim, process, &busy, &quiet)) {
                busy = 1;
                quiet = false;
        }
        *heartbeat = heartbeat_complete(process->worker, heartbeat, busy, quiet);
}

/* Like idle_check_poll(): the worker runs a job in a child, or has slept through all polls of the last 3 s.
 */
bool evidence_idle(struct sim *sim, struct process *process)
{
        if (sim->now < sim->proc_fails_until && rng_chance(&sim->rng, 300))
                return false;
        if (process->n_jobs > 0)
                return true;
        if (process->slept_at == 0 || process->slept_wakes != process->wakes) {
                process->slept_wakes = process->wakes;
                process->slept_at = sim->now;
        }
        return process->fetched_until == 0 && sim->now >= process->slept_at + IDLE_CHECK_USEC;
}

bool evidence_local(struct sim *sim, struct process *process, struct heartbeat_record *ret)
{
        const struct heartbeat_record *record = &process->records[0];

        if (!process->runner_alive)
                return false;
        if (fleet_is_bare(sim, process->fleet)) {
                *ret = (struct heartbeat_record){.written_at = sim->now,
                                                 .heartbeat = {.sent_usec = sim->now}};
                if (process->worker->heartbeat.seen)
                        return true;
                return sim->now >= process->launched_at &&
                       !(sim->now < sim->proc_fails_until && rng_chance(&sim->rng, 700));
        }
        /* Half of the workers load their shim long before they have booted. */
        bool early = process->serial % 2 == 0 && sim->now >= process->launched_at;
        bool begun = process_traits(sim, process)->shim && !process->elsewhere && record->written_at == 0 &&
                     (early || process->booted);
        process->shows_shim |= begun;
        observe_heartbeat_fault(process->worker, begun ? HEARTBEAT_FAULT_BEGUN : HEARTBEAT_FAULT_NONE);
        *ret = *record;
        if (record->written_at != 0 || begun || !worker_lacks_shim(process->worker, sim->now) ||
            sim->now < process->launched_at)
                return record->written_at != 0;
        *ret = (struct heartbeat_record){.written_at = sim->now,
                                         .heartbeat = {.sent_usec = sim->now, .shimless = true}};
        return true;
}

void check_not_idle(const struct sim *sim, struct process *process)
{
        if (process->tried_at == 0 || sim->now >= process->try_at + 2 * SEC)
                process->tried_at = sim->now;
        process->try_at = sim->now;
}

/* P1: a worker that can be quieted gets no stop signal. A stop signal that would lose a job being fetched is
 * sent only if the idle check passed, or refused for ten seconds. */
void check_reported(struct sim *sim, const struct action *action, const struct process *process)
{
        bool reports = action_signal(action) == ACTION_SIGNAL_STOP;
        bool rests = process->n_jobs > 0 ||
                     (process->fetched_until == 0 && sim->now >= process->woken_at + IDLE_CHECK_USEC);
        bool tried = process->tried_at != 0 && sim->now < process->try_at + 2 * SEC &&
                     sim->now >= process->tried_at + 10 * SEC;

        if (reports && process_behavior(sim, process)->quiet_signal != 0 && !process->refused &&
            !action->worker->process.shimless)
                violate(sim, "P1", "%s is asked to exit, though the quiet signal would do",
                        process_name(sim, process));
        if (process_traits(sim, process)->quiet_when_idle && !rests && !tried)
                violate(sim, "P1", "%s is asked to exit while it may take a job", process_name(sim, process));
}
