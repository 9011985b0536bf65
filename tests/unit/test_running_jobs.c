/* SPDX-License-Identifier: MIT */
/* Tests of the reading of what workers run (daemon/poll/running_jobs.h), with real processes and a real
 * redis-server. */
/* promises: P1 */
#include "daemon/poll/running_jobs.h"
#include "redis_runtime.h"

#define IDENTITY "host:77:0123456789ab"

static usec_t now(void)
{
        return clock_now(CLOCK_MONOTONIC);
}

static bool exists(const char *name)
{
        char path[80];

        snprintf(path, sizeof(path), "%s/%s", server_directory, name);
        return access(path, F_OK) == 0;
}

/* A worker that is this script, and beats: it is known under IDENTITY, and busy. */
static struct worker *start(const char *fleet_lines, const char *script)
{
        char text[1024];

        snprintf(text, sizeof(text), "up() { : >%s/$1; }\n%s\n", server_directory, script);
        struct worker *worker = web_start_script("/bin/sh", text, fleet_lines);
        run_until(exists("up") && web_is_up());
        attach_heartbeat(worker, worker->process.pid, now());
        ck_assert_int_eq(heartbeats_know(worker->handle->slot, IDENTITY), 0);
        worker->state = WORKER_ACTIVE;
        worker->heartbeat.seen = true;
        worker->heartbeat.busy = 1;
        return worker;
}

/* It runs this job for so long. */
static void put_job(const char *jid, long long seconds)
{
        char text[256];

        snprintf(text, sizeof(text),
                 "{\"queue\":\"low\",\"payload\":\"{\\\"class\\\":\\\"Hard\\\",\\\"jid\\\":\\\"%s\\\","
                 "\\\"args\\\":[]}\",\"run_at\":%lld}",
                 jid, (long long)time(NULL) - seconds);
        server_do("HSET " IDENTITY ":work %s %s", jid, text);
}

static bool reads(const struct worker *worker)
{
        return worker->handle->running_jobs;
}

static unsigned reported(enum event_kind kind)
{
        unsigned n = 0;

        for (size_t i = 0; i < runtime_world->n_events; i++)
                n += runtime_world->events[i].kind == kind;
        return n;
}

TEST_LOOP(the_jobs_of_one_that_drains_are_read, 2)
{
        struct worker *worker = start("", "up up; exec sleep 1000");

        put_job("j1", 100);
        put_job("j2", 5);
        worker->state = _i == 0 ? WORKER_QUIET : WORKER_STOPPING;
        running_jobs_poll(worker);
        run_until(!reads(worker));
        ck_assert_uint_eq(worker->jobs.count, 2);
        usec_t oldest = usec_sub(now(), worker->jobs.oldest_at);
        ck_assert_uint_ge(oldest, 99 * USEC_PER_SEC);
        ck_assert_uint_lt(oldest, 200 * USEC_PER_SEC);
}

TEST(what_nobody_wants_to_know_is_not_read)
{
        struct worker *worker = start("job_warn_after=none low=none\n", "up up; exec sleep 1000");

        running_jobs_poll(worker); /* it does not drain, and there is no limit */
        ck_assert(!reads(worker));
        worker->state = WORKER_QUIET;
        worker->heartbeat.busy = 0;
        running_jobs_poll(worker);
        ck_assert(!reads(worker));
        worker->heartbeat.busy = 1;
        running_jobs_poll(worker);
        ck_assert(reads(worker));
}

TEST(one_reading_is_under_way_at_a_time)
{
        struct worker *worker = start("", "up up; exec sleep 1000");

        worker->state = WORKER_QUIET;
        running_jobs_poll(worker);
        const struct reader *first = worker->handle->running_jobs;
        running_jobs_poll(worker);
        ck_assert_ptr_eq(worker->handle->running_jobs, first);
        run_until(!reads(worker));
        running_jobs_poll(worker);
        ck_assert(reads(worker));
}

TEST(a_long_job_is_reported_of_once)
{
        struct worker *worker = start("job_warn_after=60s other=1s\n", "up up; exec sleep 1000");

        put_job("j1", 100);
        put_job("j2", 5);
        while (sd_event_run(event, 0) > 0)
                ;
        for (unsigned i = 0; i < 3; i++) {
                unsigned turns = runtime_wakeups;

                running_jobs_poll(worker);
                run_until(!reads(worker));
                ck_assert_uint_eq(reported(EVENT_JOB_LONG), 1);
                if (i == 0)
                        run_until(runtime_wakeups > turns); /* it is reported before the loop sleeps again */
        }
        ck_assert(runtime_reported("Hard j1 (queue low)"));
        put_job("j3", 61);
        running_jobs_poll(worker);
        run_until(!reads(worker));
        ck_assert_uint_eq(reported(EVENT_JOB_LONG), 2);
        ck_assert(runtime_reported("Hard j3 (queue low)"));
}

TEST(what_one_ran_whose_memory_went_over_a_limit_is_reported)
{
        struct worker *worker = start("memory_limit=1M\n", "up up; exec sleep 1000");

        put_job("j1", 5);
        worker->memory.breach = BREACH_LIMIT;
        worker->memory.breach_at = now();
        running_jobs_tick(runtime_world);
        ck_assert(!reads(worker)); /* it may have stood in the list of before */
        worker->heartbeat.changed_at = worker->heartbeat.after = now();
        running_jobs_tick(runtime_world);
        ck_assert(reads(worker));
        run_until(!reads(worker));
        ck_assert_uint_eq(worker->fleet->culprits[0].classes.n, 1);
        ck_assert_str_eq(worker->fleet->culprits[0].classes.list[0].name, "Hard");
        running_jobs_tick(runtime_world);
        ck_assert(!reads(worker));
}

TEST(what_could_not_be_read_changes_nothing)
{
        struct worker *worker = start("job_warn_after=60s\n", "up up; exec sleep 1000");

        server_do("SET " IDENTITY ":work x");
        worker->jobs.count = 7;
        running_jobs_poll(worker);
        run_until(!reads(worker));
        ck_assert_uint_eq(worker->jobs.count, 7);
        ck_assert_uint_eq(reported(EVENT_JOB_LONG), 0);
}

TEST(what_one_ran_that_is_gone_is_not_reported)
{
        struct worker *worker = start("job_warn_after=60s\n", "up up; exec sleep 1000");

        put_job("j1", 100);
        running_jobs_poll(worker);
        worker->state = WORKER_GONE;
        run_until(!reads(worker));
        ck_assert_uint_eq(reported(EVENT_JOB_LONG), 0);
        worker->state = WORKER_ACTIVE; /* the runtime ends it */
}

REDIS_RUNTIME_MAIN("work_list", redis_runtime_setup, redis_runtime_teardown_all)
