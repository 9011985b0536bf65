/* SPDX-License-Identifier: MIT */
/* Workers that live and have stopped beating: when they count, who takes their place, and when they end. */
/* promises: P3 P5 P9 */
#include "decide/command.h"
#include "model/describe.h"
#include "observe/observe.h"
#include "world.h"

TEST_WORLD(2)
{
        t.fleet_settings.hang_after = 5 * USEC_PER_MIN;
}

static struct worker *hang(unsigned index)
{
        struct worker *worker = test_worker(&t, index);

        test_process(worker)->hung = true;
        return worker;
}

TEST(one_that_hangs_is_replaced_and_kept)
{
        test_settle(&t);
        struct worker *worker = hang(1);
        test_run(&t, 5 * 60);
        ck_assert_uint_eq(t.starts, 2);
        ck_assert_uint_eq(test_counts(&t).active, 2);
        test_after(&t, 5, test_counts(&t).hung, 1);
        ck_assert_uint_eq(t.starts, 3);
        test_run(&t, 600);
        struct fleet_counts counts = test_counts(&t);
        ck_assert_uint_eq(counts.active, 2);
        ck_assert_uint_eq(counts.live, 3);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert(worker->heartbeat.hung);
        ck_assert_uint_eq(test_events(&t, EVENT_HUNG), 1);
        ck_assert_uint_eq(test_event(&t, EVENT_HUNG)->index, 1);
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_HUNG);
        ck_assert_uint_eq(usec_sub(t.now, worker->heartbeat.changed_at) / USEC_PER_MIN, 15);
        ck_assert_uint_eq(t.starts, 3);
        ck_assert_uint_eq(t.quiets + t.stops + t.kills, 0);
}

TEST(one_that_heartbeats_again_counts_again_and_one_too_many_leaves)
{
        test_settle(&t);
        struct worker *worker = hang(1);
        test_after(&t, 400, worker->heartbeat.hung, true);
        test_process(worker)->hung = false;
        test_after(&t, 10, worker->heartbeat.hung, false);
        ck_assert_uint_eq(test_event(&t, EVENT_BEATS_AGAIN)->index, 1);
        test_run(&t, 60);
        struct fleet_counts counts = test_counts(&t);
        ck_assert_uint_eq(counts.active, 2);
        ck_assert_uint_eq(counts.live, 2);
        ck_assert_uint_eq(counts.hung, 0);
        ck_assert_uint_eq(t.quiets, 1);
}

TEST(its_place_counts_for_max_processes)
{
        t.fleet_settings.max_processes = 3;
        test_settle(&t);
        hang(1);
        test_run(&t, 400);
        hang(2);
        test_after(&t, 400, test_counts(&t).live, 3);
        ck_assert_uint_eq(test_counts(&t).hung, 2);
        ck_assert_uint_eq(t.starts, 3);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_PLACES);
}

TEST(silence_without_redis_or_in_doubtful_time_is_no_hang)
{
        test_settle(&t);
        struct worker *worker = hang(1);
        test_run(&t, 200);
        test_redis(&t, false);
        test_run(&t, 600);
        test_redis(&t, true);
        test_after(&t, 200, worker->heartbeat.hung, false);
        t.suspended_usec += USEC_PER_HOUR;
        test_after(&t, 200, worker->heartbeat.hung, false);
        test_after(&t, 110, worker->heartbeat.hung, true);
}

TEST(it_hangs_no_earlier_than_it_is_stale)
{
        t.fleet_settings.hang_after = USEC_PER_SEC;
        test_settle(&t);
        struct worker *worker = hang(1);
        test_after(&t, 34, worker->heartbeat.hung, false);
        test_after(&t, 20, worker->heartbeat.hung, true);
}

TEST(a_quiet_one_that_hangs_is_reported_of_and_kept)
{
        test_settle(&t);
        struct worker *worker = test_worker(&t, 1);
        test_process(worker)->busy = 1;
        command_quiet_worker(worker, NULL, t.now);
        test_after(&t, 30, worker->state, WORKER_QUIET);
        hang(1);
        test_after(&t, 400, worker->heartbeat.hung, true);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_HUNG);
        ck_assert_uint_eq(test_counts(&t).hung, 0);
        ck_assert_uint_eq(t.stops, 0);
}

TEST(hang_action_kill_reports_it_to_exit_and_kills_it)
{
        t.fleet_settings.hang_action = HANG_KILL;
        test_settle(&t);
        struct worker *worker = hang(1);
        test_process(worker)->deaf = true;
        test_process(worker)->busy = 3;
        test_after(&t, 305, worker->state, WORKER_STOPPING);
        ck_assert_int_eq(worker->reason, REASON_HUNG);
        /* The hang is the reason to exit, not how it exits. */
        ck_assert(!worker->heartbeat.hung);
        ck_assert_uint_eq(t.kills, 0);
        test_after(&t, 70, t.stops, 1);
        ck_assert_uint_eq(t.kills, 1);
        ck_assert_uint_eq(test_counts(&t).live, 2);
        ck_assert_uint_eq(test_counts(&t).active, 2);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
}

TEST(with_all_silent_one_is_tried_and_none_is_killed)
{
        t.fleet_settings.hang_action = HANG_KILL;
        t.newborn.boot_usec = USEC_PER_SEC;
        test_settle(&t);
        hang(1);
        hang(2);
        t.newborn.boot_usec = 100 * USEC_PER_SEC;
        test_after(&t, 320, test_counts(&t).hung, 2);
        ck_assert_uint_eq(t.starts, 3);
        ck_assert_uint_eq(t.stops, 0);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_HUNG);
        /* It beats: the other place is filled too, and those who stay silent are ended. */
        test_after(&t, 90, t.starts, 4);
        ck_assert_uint_eq(t.stops, 0);
        test_after(&t, 60, t.stops, 2);
}

TEST(all_that_were_silent_and_heartbeat_again_at_once_live)
{
        t.fleet_settings.hang_action = HANG_KILL;
        test_settle(&t);
        hang(1);
        hang(2);
        t.newborn.boot_usec = USEC_INFINITY;
        test_after(&t, 400, test_counts(&t).hung, 2);
        test_process(test_worker(&t, 2))->hung = false;
        test_run(&t, 12);
        test_process(test_worker(&t, 1))->hung = false;
        test_after(&t, 60, test_counts(&t).active, 2);
        ck_assert(!test_worker(&t, 1)->heartbeat.hung);
}

TEST(without_a_place_one_is_ended_to_try_another)
{
        t.fleet_settings.hang_action = HANG_KILL;
        t.fleet_settings.max_processes = 2;
        t.fleet_settings.restart_surge = (struct share){.value = 0};
        test_settle(&t);
        hang(1);
        hang(2);
        t.newborn.boot_usec = 20 * USEC_PER_SEC;
        test_after(&t, 310, t.stops, 1);
        ck_assert_uint_eq(test_counts(&t).live, 2);
        test_after(&t, 120, t.stops, 2);
        ck_assert_uint_eq(test_counts(&t).ready, 2);
}

TEST(a_restart_does_not_wait_for_one_that_hangs)
{
        test_settle(&t);
        struct worker *worker = hang(1);
        test_run(&t, 400);
        test_restart_to(&t, 120, ROLLOUT_DONE);
        ck_assert_uint_eq(test_events(&t, EVENT_ROLLOUT_DONE), 1);
        ck_assert(worker->heartbeat.hung && worker->orders.quiet);
        ck_assert_uint_eq(test_counts(&t).outdated, 0);
        ck_assert_uint_eq(test_counts(&t).live, 3);
        /* Even if a place has become empty meanwhile, its old code does not continue. */
        test_process(worker)->hung = false;
        test_after(&t, 10, worker->state, WORKER_QUIET);
        test_after(&t, 60, test_counts(&t).live, 2);
        ck_assert_uint_eq(test_counts(&t).active, 2);
}

TEST(without_hang_after_none_hangs)
{
        t.fleet_settings.hang_after = 0;
        test_settle(&t);
        struct worker *worker = hang(1);
        test_after(&t, 1000, worker->heartbeat.hung, false);
        ck_assert_uint_eq(t.starts, 2);
}

TEST_MAIN("hang", .each = {setup, teardown})
