/* SPDX-License-Identifier: MIT */
/* The simulated servers and their faults: down, silent, slow, failed over, a stale replica, garbage, emptied;
 * a connection that is lost, answers that are late, or lie as a writer to the server can. */
#include "sim.h"

#define MSEC USEC_PER_MSEC
#define SEC  USEC_PER_SEC

/* A query takes a few commands, and each reply may keep arriving for ten times the timeout. */
#define DELAY_MAX_USEC (50 * SEC)
/* As in src/redis/redis.c. */
#define BACKOFF_MIN_USEC   (250 * MSEC)
#define BACKOFF_MAX_USEC   (5 * SEC)
#define BACKOFF_RESET_USEC (10 * SEC)

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

static usec_t pick_span(struct rng *rng)
{
        static const usec_t spans[] = {5 * SEC, 60 * SEC, 300 * SEC, 600 * SEC};

        return rng_range(rng, 0, spans[rng_range(rng, 0, ELEMENTSOF(spans) - 1)]);
}

void readers_open(struct sim *sim)
{
        struct rng rng = rng_fork(sim->seed, 500);
        bool lies = rng_chance(&rng, 400);

        for (unsigned i = 0; i < sim->n_fleets; i++) {
                sim->fleets[i].reader.rng = rng_fork(sim->seed, 510 + i);
                sim->fleets[i].reader.lost_at = USEC_INFINITY;
        }
        if (!rng_chance(&rng, 300))
                return;
        for (size_t i = 0; i < sim->n_acts; i++) {
                struct act *act = &sim->acts[i];

                /* Most orders and failures of workers stay: these matter while answers are late or lie. */
                if (!rng_chance(&rng, act->kind <= ACT_REDIS_EMPTIED ? 700 : 200))
                        continue;
                act->kind = (enum act_kind)rng_range(&rng, ACT_READER_LOST,
                                                     lies ? ACT_READER_LIES : ACT_READER_DELAYS);
                act->a = rng_range(&rng, 0, sim->n_fleets - 1);
                act->b = pick_span(&rng);
                act->c = rng_range(&rng, 0, DELAY_MAX_USEC);
        }
}

void reader_befalls(struct sim *sim, const struct act *act)
{
        unsigned fleet = (unsigned)(act->a % sim->n_fleets);
        struct reader_sim *reader = &sim->fleets[fleet].reader;
        usec_t until = sim->now + act->b;

        if (fleet_is_local(sim, fleet))
                return;
        switch (act->kind) {
        case ACT_READER_LOST:
                reader->lost_at = sim->now + 1;
                reader->losses = (unsigned)(act->c % 20);
                break;
        case ACT_READER_DELAYS:
                reader->delays_until = until;
                reader->delay_max = act->c;
                break;
        default:
                reader->lies_until = until;
                reader->lie = (enum lie)(act->c % _LIE_MAX);
                break;
        }
}

void readers_calm(struct sim *sim)
{
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                struct reader_sim *reader = &sim->fleets[i].reader;

                reader->delays_until = reader->lies_until = 0;
                reader->losses = 0;
                reader->lost_at = USEC_INFINITY;
        }
        /* A lie on its way would undo the repair of the worker. */
        SIM_FOREACH_PROCESS(sim, process)
                process->answered &= !process->answer.lie;
}

usec_t reader_delay(struct sim *sim, unsigned fleet)
{
        struct reader_sim *reader = &sim->fleets[fleet].reader;

        return sim->now < reader->delays_until ? rng_range(&reader->rng, 0, reader->delay_max) : 0;
}

bool reader_is_prompt(const struct sim *sim, unsigned fleet)
{
        const struct reader_sim *reader = &sim->fleets[fleet].reader;

        return sim->now >= reader->delays_until && reader->losses == 0 && reader->lost_at == USEC_INFINITY;
}

void reader_connected(struct sim *sim, unsigned fleet)
{
        struct reader_sim *reader = &sim->fleets[fleet].reader;

        reader->connected_at = sim->now;
        if (reader->losses == 0)
                return;
        reader->losses--;
        reader->lost_at = sim->now + rng_range(&reader->rng, 1, 6 * SEC);
}

void reader_started(struct sim *sim, unsigned fleet)
{
        sim->fleets[fleet].reader.lost_at = USEC_INFINITY;
}

usec_t reader_lost(struct sim *sim, unsigned fleet)
{
        struct reader_sim *reader = &sim->fleets[fleet].reader;

        reader->lost_at = USEC_INFINITY;
        if (reader->connected_at != 0 && sim->now >= reader->connected_at + BACKOFF_RESET_USEC)
                reader->failures = 0;
        usec_t pause = MIN(BACKOFF_MIN_USEC << MIN(reader->failures, 5U), BACKOFF_MAX_USEC);
        reader->failures++;
        return pause + rng_range(&reader->rng, 5 * MSEC, 100 * MSEC);
}

/* A lie within the bounds of heartbeat_check(). */
static struct heartbeat_record lie(const struct sim *sim, const struct process *process,
                                   struct reader_sim *reader, struct heartbeat_record record)
{
        struct heartbeat *heartbeat = &record.heartbeat;
        usec_t shift = rng_range(&reader->rng, 1, 24 * USEC_PER_HOUR);

        if (!process->runner_alive || record.written_at == 0 || reader->lie == LIE_FOREIGN)
                return record;
        record.lie = true;
        record.written_at = sim->now;
        heartbeat->sent_usec = sim_time_of_heartbeats(sim);
        switch (reader->lie) {
        case LIE_IDLE:
                heartbeat->busy = 0;
                heartbeat->quiet = !process_traits(sim, process)->title_completes;
                heartbeat->work_list_known = heartbeat->work_list_empty = true;
                break;
        case LIE_BUSY:
                heartbeat->busy = process_traits(sim, process)->title_completes ? 0 : SIM_JOBS_MAX;
                heartbeat->quiet = false;
                break;
        case LIE_PAST:
                heartbeat->sent_usec -= shift;
                break;
        default:
                heartbeat->sent_usec += shift;
                break;
        }
        return record;
}

struct heartbeat_record reader_answers(struct sim *sim, struct process *process,
                                       struct heartbeat_record record)
{
        struct reader_sim *reader = &sim->fleets[process->fleet].reader;

        if (sim->now < reader->lies_until) {
                reader->lied_at = sim->now;
                record = lie(sim, process, reader, record);
        }
        return record;
}

const struct heartbeat_record *reader_foreign(const struct sim *sim, unsigned fleet)
{
        static struct heartbeat_record record;

        if (sim->now >= sim->fleets[fleet].reader.lies_until || sim->fleets[fleet].reader.lie != LIE_FOREIGN)
                return NULL;
        record = (struct heartbeat_record){.written_at = sim->now, .heartbeat = {.sent_usec = sim->now}};
        return &record;
}
