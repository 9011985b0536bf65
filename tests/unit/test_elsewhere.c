/* SPDX-License-Identifier: MIT */
/* Workers that have booted by their title, and whose heartbeat is not found: when that is said, and how they
 * are replaced without costing a job. */
/* promises: P1 P2 P5 P7 */
#include "decide/command.h"
#include "model/deadlines.h"
#include "model/idle_proof.h"
#include "model/rollout.h"
#include "model/world.h"
#include "observe/observe.h"
#include "world.h"

#define SEC USEC_PER_SEC

TEST_WORLD(1)
{
}

struct reading {
        bool unknown, quiet;
        unsigned busy;
        unsigned threads; /* with the comm of a job thread */
};

/* A regular poll, some seconds later. */
static void read_after(struct worker *worker, double seconds, struct reading reading)
{
        t.now += (usec_t)(seconds * 1e6);
        observe_threads(worker, reading.threads);
        observe_title(worker, !reading.unknown, reading.busy, reading.quiet);
        observe_title_elsewhere(worker, 5, t.now);
}

static void find_elsewhere(struct worker *worker)
{
        observe_booted(worker, true, t.now);
        observe_heartbeat_process(worker, worker->process.pid, worker->process.start, t.now);
        observe_elsewhere(worker);
        worker->process.boot_seen_at = t.now;
}

/* Booted, its job threads counted, and shown to accept jobs for ready_after. */
static struct worker *spawn_elsewhere(void)
{
        struct worker *worker = test_spawn(&t);

        test_process(worker)->silent = true;
        find_elsewhere(worker);
        read_after(worker, 0, (struct reading){.threads = 5});
        read_after(worker, 0, (struct reading){.threads = 5});
        return worker;
}

static struct worker *spawn_quiet(void)
{
        struct worker *worker = spawn_elsewhere();

        command_quiet_worker(worker, NULL, t.now);
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 1);
        observe_quieted(worker, REASON_OPERATOR, 0, t.now);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        return worker;
}

TEST(heartbeat_is_missing_once_a_search_after_the_boot_has_found_none)
{
        struct worker *worker = test_spawn(&t);
        usec_t booted_at = t.now;

        ck_assert(!observe_boot_title(worker, true, 0, booted_at));
        ck_assert(!observe_boot_title(worker, true, booted_at + 2 * SEC, booted_at + 5 * SEC));
        ck_assert(observe_boot_title(worker, true, booted_at + 4 * SEC, booted_at + 5 * SEC));
        /* Another process has taken its place. */
        ck_assert(!observe_boot_title(worker, false, booted_at + 9 * SEC, booted_at + 10 * SEC));
        ck_assert(!observe_boot_title(worker, true, booted_at + 14 * SEC, booted_at + 15 * SEC));
}

TEST(boot_that_was_seen_before_a_doubt_about_time_does_not_count)
{
        struct worker *worker = test_spawn(&t);

        ck_assert(!observe_boot_title(worker, true, 0, t.now));
        t.world->doubt.since = t.now + SEC;
        ck_assert(!observe_boot_title(worker, true, t.now + 4 * SEC, t.now + 5 * SEC));
        ck_assert(observe_boot_title(worker, true, t.now + 9 * SEC, t.now + 10 * SEC));
}

TEST(title_is_polled_long_before_boot_timeout)
{
        struct worker *worker = test_spawn(&t);

        ck_assert(worker_poll_items(worker, false, t.now) & POLL_ELSEWHERE);
        ck_assert(!(worker_poll_items(worker, true, t.now) & POLL_ELSEWHERE));
        find_elsewhere(worker);
        unsigned items = worker_poll_items(worker, false, t.now);
        ck_assert_uint_eq(items & (POLL_TITLE | POLL_THREADS | POLL_HEARTBEAT),
                          POLL_TITLE | POLL_THREADS | POLL_HEARTBEAT);
        ck_assert(!(items & (POLL_ELSEWHERE | POLL_BOOT)));
        ck_assert_uint_eq(test_events(&t, EVENT_ELSEWHERE), 1);
}

TEST(worker_is_not_quieted_before_its_job_threads_were_counted)
{
        struct worker *worker = test_spawn(&t);

        find_elsewhere(worker);
        command_quiet_worker(worker, NULL, t.now);
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 0);
        /* A capsule's threads have names that nobody knows: 3 of 5 are seen. */
        read_after(worker, 5, (struct reading){.threads = 3});
        read_after(worker, 5, (struct reading){.threads = 3});
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 0);
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_ELSEWHERE);
        /* Native threads have the same name. */
        read_after(worker, 5, (struct reading){.threads = 6});
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 0);
        read_after(worker, 5, (struct reading){.threads = 5});
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 1);
}

TEST(worker_is_not_quieted_by_an_old_title_or_without_redis)
{
        struct worker *worker = spawn_elsewhere();

        command_quiet_worker(worker, NULL, t.now);
        t.now += 16 * SEC;
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 0);
        read_after(worker, 0, (struct reading){.threads = 5});
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 1);
        t.world->doubt.since = t.now;
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 0);
        read_after(worker, 1, (struct reading){.threads = 5});
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 1);
        read_after(worker, 1, (struct reading){.unknown = true});
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 0);
        read_after(worker, 1, (struct reading){.threads = 5});
        test_redis(&t, false);
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 0);
}

TEST(worker_is_stopped_after_two_intervals_of_an_idle_title_and_without_job_threads)
{
        struct worker *worker = spawn_quiet();

        read_after(worker, 5, (struct reading){.threads = 0}); /* the title is older than the signal */
        ck_assert(!test_stops(&t, worker));
        for (unsigned i = 0; i < 4; i++) {
                read_after(worker, 5, (struct reading){.quiet = true});
                ck_assert(!test_stops(&t, worker));
        }
        read_after(worker, 5, (struct reading){.quiet = true});
        ck_assert(test_stops(&t, worker));
}

static void pass_idle(struct worker *worker, unsigned threads)
{
        for (unsigned i = 0; i < 10; i++)
                read_after(worker, 5, (struct reading){.quiet = true, .threads = threads});
}

TEST(busy_title_job_threads_and_doubt_prevent_the_stop)
{
        struct worker *worker = spawn_quiet();

        pass_idle(worker, 1);
        ck_assert(!test_stops(&t, worker));
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_ELSEWHERE);
        read_after(worker, 5, (struct reading){.quiet = true, .busy = 1});
        ck_assert(!test_stops(&t, worker));
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_JOBS);
        /* The row begins anew. */
        for (unsigned i = 0; i < 4; i++)
                read_after(worker, 5, (struct reading){.quiet = true});
        ck_assert(!test_stops(&t, worker));
        read_after(worker, 5, (struct reading){.unknown = true});
        ck_assert(!test_stops(&t, worker));
        pass_idle(worker, 0);
        t.world->doubt.since = t.now;
        read_after(worker, 5, (struct reading){.quiet = true});
        ck_assert(!test_stops(&t, worker));
        pass_idle(worker, 0);
        ck_assert(test_stops(&t, worker));
}

TEST(force_stops_a_worker_whose_jobs_cannot_be_seen_to_end)
{
        struct worker *worker = spawn_quiet();

        pass_idle(worker, 1);
        ck_assert_int_eq(command_stop_worker(worker, true, NULL, t.now), COMMAND_DONE);
        ck_assert(test_stops(&t, worker));
        observe_stopped(worker, REASON_OPERATOR, 0, t.now);
        t.now += t.fleet_settings.stop_timeout;
        test_redis(&t, false);
        ck_assert_uint_eq(test_plans(&t, ACTION_KILL, worker), 1);
}

TEST(force_stops_one_worker_once_and_no_other)
{
        struct worker *worker = test_spawn_ready(&t), *other = test_spawn_ready(&t);

        command_stop_worker(worker, true, NULL, t.now);
        test_plan(&t);
        ck_assert_uint_eq(test_planned(&t, ACTION_STOP, worker), 1);
        ck_assert_uint_eq(test_planned(&t, ACTION_QUIET, worker), 0);
        ck_assert_uint_eq(test_planned(&t, ACTION_STOP, other), 0);
}

TEST(order_says_what_becomes_of_it)
{
        struct worker *worker = test_spawn(&t);

        ck_assert_int_eq(command_quiet_worker(worker, NULL, t.now), COMMAND_WAITS);
        find_elsewhere(worker);
        ck_assert_int_eq(command_quiet_worker(worker, NULL, t.now), COMMAND_KEPT);
        read_after(worker, 1, (struct reading){.threads = 5});
        read_after(worker, 1, (struct reading){.threads = 5});
        ck_assert_int_eq(command_stop_worker(worker, false, NULL, t.now), COMMAND_DONE);
        observe_quieted(worker, REASON_OPERATOR, 0, t.now);
        ck_assert_int_eq(command_stop_worker(worker, false, NULL, t.now), COMMAND_LEAVING);
        ck_assert_int_eq(command_stop_worker(worker, true, NULL, t.now), COMMAND_DONE);
}

TEST(restart_replaces_workers_whose_heartbeats_are_missing_by_such)
{
        struct worker *old = spawn_elsewhere();

        test_restart(&t);
        test_plan(&t);
        ck_assert_uint_eq(test_planned(&t, ACTION_QUIET, old), 0);
        ck_assert_uint_eq(test_planned(&t, ACTION_START, NULL), 1);
        struct worker *new = spawn_elsewhere();
        ck_assert_uint_eq(new->generation, t.fleet->generation);
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, old), 0);
        for (unsigned i = 0; i < 2; i++) {
                read_after(old, 5, (struct reading){.threads = 5});
                read_after(new, 0, (struct reading){.threads = 5});
        }
        ck_assert(worker_title_ready(new, t.now));
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, old), 1);
        ck_assert_uint_eq(test_planned(&t, ACTION_START, NULL), 0);
        rollout_observe_time(t.fleet, t.now);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_RUNNING);
        observe_quieted(old, REASON_RESTART, 0, t.now);
        rollout_observe_time(t.fleet, t.now);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_DONE);
}

/* P7: the new release has a wrong database. */
TEST(worker_that_sends_heartbeats_is_not_replaced_by_one_whose_heartbeats_are_missing)
{
        struct worker *old = test_spawn_ready(&t);

        test_restart(&t);
        struct worker *new = spawn_elsewhere();
        t.now += 60 * SEC;
        test_heartbeat(&t, old, 1000, 0, false);
        read_after(new, 0, (struct reading){.threads = 5});
        test_heartbeat(&t, old, 1001, 0, false);
        ck_assert(worker_title_ready(new, t.now));
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, old), 0);
        ck_assert_int_eq(old->verdict.waits_for, WAIT_READY_OTHERS);
}

/* With a surge of 0 the old worker leaves first. */
TEST(restart_is_not_done_by_workers_whose_heartbeats_are_missing_if_those_of_the_old_were_found)
{
        struct worker *old = test_spawn_ready(&t);

        t.fleet_settings.restart_surge = (struct share){0};
        test_restart(&t);
        observe_quieted(old, REASON_RESTART, 0, t.now);
        struct worker *new = spawn_elsewhere();
        for (unsigned i = 0; i < 3; i++)
                read_after(new, 5, (struct reading){.threads = 5});
        ck_assert(worker_title_ready(new, t.now));
        rollout_observe_time(t.fleet, t.now);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_RUNNING);
        test_exit(&t, old, 0);
        t.now += t.fleet_settings.rollout_timeout;
        rollout_observe_time(t.fleet, t.now);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_HALTED);
}

TEST(force_ends_a_worker_that_is_stopping)
{
        struct worker *worker = spawn_elsewhere();

        worker->state = WORKER_STOPPING;
        ck_assert_int_eq(command_stop_worker(worker, false, NULL, t.now), COMMAND_LEAVING);
        ck_assert_int_eq(command_stop_worker(worker, true, NULL, t.now), COMMAND_DONE);
        ck_assert(worker->orders.forced);
}

TEST(worker_is_like_any_other_once_its_heartbeat_is_found)
{
        struct worker *worker = spawn_elsewhere();

        test_heartbeat(&t, worker, 1000, 0, false);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert(!worker->process.elsewhere && !worker->process.booted);
}

TEST(quieted_worker_whose_heartbeat_is_found_is_no_successor)
{
        struct worker *worker = spawn_quiet();

        test_heartbeat(&t, worker, 1000, 0, true);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        ck_assert_uint_eq(test_events(&t, EVENT_SEVERAL), 0);
        t.now += 10 * SEC;
        test_heartbeat(&t, worker, 1010, 0, true);
        observe_threads(worker, 0);
        observe_title(worker, true, 0, true);
        ck_assert(test_stops(&t, worker));
}

TEST(worker_that_was_quieted_by_someone_else_is_replaced)
{
        struct worker *worker = spawn_elsewhere();

        read_after(worker, 5, (struct reading){.quiet = true});
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        ck_assert_int_eq(worker->reason, REASON_EXTERNAL);
        pass_idle(worker, 0);
        ck_assert(test_stops(&t, worker));
}

TEST_MAIN("elsewhere", .each = {setup, teardown})
