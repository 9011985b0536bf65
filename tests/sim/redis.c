/* SPDX-License-Identifier: MIT */
/* The simulated Redis and its faults: down, silent, slow, failed over, a stale replica, garbage, emptied. */
#include "sim.h"

bool redis_answers(const struct sim *sim)
{
        return sim->now >= sim->down_until && sim->now >= sim->silent_until;
}

usec_t redis_trip(struct sim *sim, struct rng *rng)
{
        usec_t trip = rng_range(rng, 200, 3 * USEC_PER_MSEC);

        return sim->now < sim->slow_until ? trip + rng_range(rng, 0, sim->slow_usec) : trip;
}

void redis_write(struct sim *sim, struct process *process, const struct heartbeat *heartbeat)
{
        if ((!redis_answers(sim) && !fleet_is_local(sim, process->fleet)) || process->elsewhere)
                return;
        for (unsigned i = RECORDS_MAX - 1; i > 0; i--)
                process->records[i] = process->records[i - 1];
        process->records[0] = (struct heartbeat_record){.written_at = sim->now, .heartbeat = *heartbeat};
        process->listed = true;
}

bool redis_shows_age(const struct sim *sim, const struct process *process)
{
        return !process_traits(sim, process)->process_is_heartbeat;
}

/* A database shows the jobs as they are now, beside the heartbeat that the worker wrote last. */
static void read_row(const struct sim *sim, const struct process *process, struct heartbeat_record *record)
{
        const struct behavior *behavior = process_behavior(sim, process);

        if (!behavior->database || record->written_at == 0)
                return;
        if (behavior->locked && !process->runner_alive)
                record->written_at = 0;
        else if (process->runner_alive)
                record->heartbeat.busy = process_jobs(process);
        record->heartbeat.work_list_empty = record->heartbeat.busy == 0;
}

struct heartbeat_record redis_read(struct sim *sim, struct process *process)
{
        struct heartbeat_record record = process->records[0];
        /* Left out, because nothing could distinguish them from life: late records of dead processes on a
         * replica, and old records of frameworks where an existing record counts as a heartbeat. */
        bool late = process->runner_alive && redis_shows_age(sim, process);
        bool frozen = late && sim->now < sim->frozen_until;

        if (frozen)
                record = process->frozen_record;
        else if (late && sim->now < sim->lags_until)
                record = process->records[sim->lag];
        else
                read_row(sim, process, &record);
        /* A frozen replica expires nothing. */
        if (record.written_at != 0 && !frozen &&
            sim->now - record.written_at > process_behavior(sim, process)->record_expiry)
                record.written_at = 0;
        if (sim->now < sim->garbage_until) {
                if (rng_chance(&sim->rng, 500))
                        record.written_at = 0;
                record.heartbeat.work_list_known = rng_chance(&sim->rng, 500);
        }
        return record;
}

void redis_fail_over(struct sim *sim, unsigned lag)
{
        clones_end(sim, true);
        SIM_FOREACH_PROCESS(sim, process) {
                if (fleet_is_local(sim, process->fleet))
                        continue;
                process->listed = process->listed && lag < RECORDS_MAX;
                for (unsigned j = 0; j < RECORDS_MAX; j++)
                        process->records[j] = j + lag < RECORDS_MAX ? process->records[j + lag]
                                                                    : (struct heartbeat_record){0};
        }
}

void redis_freeze(struct sim *sim)
{
        SIM_FOREACH_PROCESS(sim, process)
                process->frozen_record = process->records[0];
}

void redis_empty(struct sim *sim)
{
        redis_fail_over(sim, RECORDS_MAX);
}
