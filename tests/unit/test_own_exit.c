/* SPDX-License-Identifier: MIT */
/* What follows from a worker that exits with status 0 without being asked to. */
/* promises: P3 P6 P7 */
#include "decide/command.h"
#include "frameworks/plain/plain.h"
#include "model/describe.h"
#include "model/rollout.h"
#include "model/world.h"
#include "observe/observe.h"
#include "world.h"

TEST_WORLD(2)
{
}

TEST(a_worker_that_ends_by_itself_in_good_order_is_replaced_at_once)
{
        struct worker *worker = test_spawn_ready(&t);

        t.now += USEC_PER_HOUR;
        test_exit(&t, worker, 0);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
        ck_assert_uint_eq(test_events(&t, EVENT_CRASHED), 0);
        ck_assert_ptr_nonnull(strstr(test_event_text(&t, EVENT_GONE), "exited cleanly (status 0) without"));
        ck_assert_int_eq(test_event(&t, EVENT_GONE)->reason, REASON_EXTERNAL);
        ck_assert_int_eq(worker->reason, REASON_EXTERNAL);
        ck_assert_uint_eq(test_plans(&t, ACTION_START, NULL), 2);
}

/* As with --burst and no job: the next start waits, always as long, and nothing is a failure. */
TEST(short_lives_that_end_in_good_order_have_a_pace_and_are_no_crash_loop)
{
        struct worker *other = test_spawn_ready(&t);

        command_restart(t.fleet, NULL, t.now);
        for (unsigned i = 0; i < 20; i++) {
                struct worker *worker = test_spawn(&t);

                test_heartbeat(&t, worker, 100 + i, 0, false);
                t.now += USEC_PER_SEC / 5;
                test_exit(&t, worker, 0);
                /* A worker that is stable ends a row of failures, and not the wait. */
                observe_time(t.world, t.now);
                ck_assert_uint_eq(t.fleet->crash.next_at, t.now + BACKOFF_MIN_USEC);
                ck_assert_uint_eq(test_plans(&t, ACTION_START, NULL), 0);
                t.now += BACKOFF_MIN_USEC;
                ck_assert_uint_ge(test_plans(&t, ACTION_START, NULL), 1);
        }
        ck_assert_uint_eq(t.fleet->crash.count, 0);
        ck_assert_uint_eq(t.fleet->rollout.failures, 0);
        ck_assert_int_eq(t.fleet->rollout.state, ROLLOUT_RUNNING);
        ck_assert_int_eq(other->state, WORKER_ACTIVE);
}

TEST(a_restart_whose_workers_all_end_soon_halts_after_rollout_timeout)
{
        usec_t until = t.now + t.fleet_settings.rollout_timeout + 2 * t.fleet_settings.boot_timeout;

        (void)test_spawn_ready(&t);
        command_restart(t.fleet, NULL, t.now);
        for (unsigned i = 0; t.fleet->rollout.state == ROLLOUT_RUNNING; i++) {
                struct worker *worker = test_spawn(&t);

                ck_assert_uint_lt(t.now, until);
                test_heartbeat(&t, worker, 100 + i, 0, false);
                t.now += 5 * USEC_PER_SEC;
                test_exit(&t, worker, 0);
                observe_time(t.world, t.now);
                t.now += 5 * USEC_PER_SEC;
        }
        ck_assert_int_eq(t.fleet->rollout.state, ROLLOUT_HALTED);
}

TEST(status_0_before_the_first_heartbeat_is_a_failed_start_and_explained)
{
        struct worker *worker = test_spawn(&t);

        t.now += USEC_PER_SEC;
        test_exit(&t, worker, 0);
        ck_assert_uint_eq(t.fleet->crash.count, 1);
        ck_assert_ptr_nonnull(
                strstr(test_event_text(&t, EVENT_CRASHED),
                       "exited with status 0 after 1s, before its first heartbeat: the command "
                       "ended by itself or moved to the background; let it stay in the foreground"));
}

TEST(another_status_or_a_signal_is_a_crash)
{
        struct worker *worker = test_spawn_ready(&t);

        test_exit(&t, worker, 1);
        ck_assert_uint_eq(test_events(&t, EVENT_CRASHED), 1);
        worker = test_spawn_ready(&t);
        observe_exit(worker, &(struct exit_status){.known = false}, t.now);
        ck_assert_uint_eq(test_events(&t, EVENT_CRASHED), 2);
}

TEST(without_heartbeats_a_short_life_is_a_failed_start)
{
        t.fleet_settings.traits = &plain_traits;
        struct worker *worker = test_spawn(&t);

        observe_heartbeat(worker, &(struct heartbeat){.sent_usec = 1}, t.now);
        t.now += USEC_PER_SEC;
        test_exit(&t, worker, 0);
        ck_assert_uint_eq(t.fleet->crash.count, 1);
        worker = test_spawn(&t);
        observe_heartbeat(worker, &(struct heartbeat){.sent_usec = 1}, t.now);
        t.now += USEC_PER_HOUR;
        test_exit(&t, worker, 0);
        ck_assert_uint_eq(t.fleet->crash.count, 1);
        ck_assert_ptr_nonnull(strstr(test_event_text(&t, EVENT_GONE), "1h after its start"));
}

TEST_MAIN("own_exit", .each = {setup, teardown})
