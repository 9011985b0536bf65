/* SPDX-License-Identifier: MIT */
/* The planner's rules: who is started, quieted, stopped and killed, and when not. */
/* promises: P1 P2 P3 P5 P9 */
#include "decide/command.h"
#include "model/deadlines.h"
#include "observe/observe.h"
#include "world.h"

TEST_WORLD(2)
{
}

static void grow(struct worker *worker, unsigned megabytes)
{
        test_process(worker)->memory_bytes = (uint64_t)megabytes << 20;
}

TEST(starts_the_configured_count_with_the_lowest_free_indexes)
{
        test_after(&t, 1, t.starts, 2);
        test_settle(&t);
        ck_assert_ptr_nonnull(test_worker(&t, 1));
        ck_assert_ptr_nonnull(test_worker(&t, 2));
        test_after(&t, 60, t.starts, 2);
        ck_assert_uint_eq(t.quiets + t.stops + t.kills, 0);
}

TEST_LOOP(fills_the_gap_that_a_crash_leaves_at_once_with_and_without_redis, 2)
{
        test_settle(&t);
        test_redis(&t, _i == 0);
        test_exit(&t, test_worker(&t, 1), 1);
        test_after(&t, 1, t.starts, 3);
        ck_assert_int_eq(test_worker(&t, 1)->state, WORKER_STARTING);
        test_after(&t, 5, test_counts(&t).live, 2);
        ck_assert_uint_eq(t.quiets + t.stops, 0);
}

TEST(a_crash_loop_waits_longer_and_longer)
{
        t.newborn.die_usec = 500 * USEC_PER_MSEC;
        test_run(&t, 600);
        ck_assert_uint_lt(t.starts, 60);
        ck_assert_uint_gt(t.starts, 8);
        test_tick(&t, 0.1);
        ck_assert_str_ne(t.fleet->crash_last, "");
}

TEST(says_how_long_it_waits_after_a_crash)
{
        t.fleet->crash =
                (struct backoff){.count = 3, .failed_at = t.now, .next_at = t.now + 30 * USEC_PER_SEC};
        test_plan(&t);
        ck_assert_uint_eq(t.pass.plan.n_actions, 0);
        ck_assert_uint_eq(t.pass.plan.wake_at, t.now + 30 * USEC_PER_SEC);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_BACKOFF);
}

TEST(memory_replacement_is_ready_before_the_old_one_is_quieted)
{
        t.fleet_settings.memory_threshold = (uint64_t)500 << 20;
        test_settle(&t);
        grow(test_worker(&t, 1), 600);
        test_after(&t, 3, t.starts, 3);
        ck_assert_int_eq(test_worker(&t, 3)->started_for, REASON_MEMORY);
        ck_assert_int_eq(test_worker(&t, 1)->verdict.waits_for, WAIT_READY_OTHERS);
        ck_assert_uint_eq(test_worker(&t, 1)->verdict.waits_count, 1);
        while (test_worker(&t, 1)->state == WORKER_ACTIVE) {
                ck_assert_uint_ge(test_counts(&t).ready, 2);
                test_tick(&t, 1);
        }
        ck_assert(worker_ready(test_worker(&t, 3), t.now));
        ck_assert_int_eq(test_worker(&t, 1)->reason, REASON_MEMORY);
        test_after(&t, 40, test_counts(&t).live, 2);
}

TEST(memory_replaces_one_worker_at_a_time)
{
        t.fleet_settings.memory_threshold = (uint64_t)500 << 20;
        test_settle(&t);
        grow(test_worker(&t, 1), 600);
        grow(test_worker(&t, 2), 600);
        for (unsigned i = 0; i < 120; i++) {
                test_tick(&t, 1);
                struct fleet_counts counts = test_counts(&t);
                ck_assert_uint_le(counts.active + counts.starting, 3);
                ck_assert_uint_ge(counts.ready, 2);
        }
        ck_assert_uint_eq(t.starts, 4);
        ck_assert_uint_eq(t.quiets, 2);
}

TEST(memory_limit_quiets_at_once_without_a_replacement)
{
        t.fleet_settings.memory_limit = (uint64_t)500 << 20;
        test_settle(&t);
        grow(test_worker(&t, 2), 600);
        test_after(&t, 1, test_worker(&t, 2)->state, WORKER_QUIET);
        ck_assert_int_eq(test_worker(&t, 2)->reason, REASON_MEMORY);
        ck_assert_uint_eq(t.starts, 2);
        test_after(&t, 1, t.starts, 3);
}

TEST(a_threshold_below_the_boot_size_does_not_churn)
{
        t.fleet_settings.memory_threshold = (uint64_t)100 << 20;
        t.newborn.boot_usec = 20 * USEC_PER_SEC;
        test_run(&t, 3600);
        /* Without the backoff there are 182. */
        ck_assert_uint_lt(t.starts, 140);
        ck_assert_uint_ge(test_events(&t, EVENT_MEMORY_CHURN), 1);
        ck_assert_uint_ge(test_counts(&t).active, 2);
}

TEST(no_extra_process_while_memory_is_short)
{
        t.fleet_settings.memory_threshold = (uint64_t)500 << 20;
        test_settle(&t);
        observe_available_memory(t.world, (uint64_t)249 << 20);
        grow(test_worker(&t, 1), 600);
        test_after(&t, 60, t.starts, 2);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_MEMORY);
        ck_assert_uint_ge(test_events(&t, EVENT_PLACES_HELD), 1);
        observe_available_memory(t.world, (uint64_t)1 << 30);
        test_after(&t, 1, t.starts, 3);
}

TEST(old_age_replaces_one_at_a_time)
{
        t.fleet_settings.max_age = 5 * USEC_PER_MIN;
        test_settle(&t);
        usec_t born = test_worker(&t, 1)->spawned_at;
        while (t.now < born + 5 * USEC_PER_MIN - USEC_PER_SEC)
                test_tick(&t, 1);
        ck_assert_uint_eq(t.starts, 2);
        for (unsigned i = 0; i < 100; i++) {
                test_tick(&t, 1);
                ck_assert_uint_le(test_counts(&t).active + test_counts(&t).starting, 3);
                ck_assert_uint_ge(test_counts(&t).ready, 2);
        }
        ck_assert_uint_eq(t.quiets, 2);
        ck_assert_int_eq(test_event(&t, EVENT_STOPPING)->reason, REASON_AGE);
}

/* Draining */

TEST(a_drain_lasts_as_long_as_its_jobs)
{
        test_settle(&t);
        struct worker *worker = test_worker(&t, 1);
        test_process(worker)->busy = 1;
        test_run(&t, 6);
        command_quiet_worker(worker, NULL, t.now);
        test_after(&t, 7200, worker->state, WORKER_QUIET);
        ck_assert_uint_eq(t.stops, 0);
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_JOBS);
        ck_assert_uint_eq(worker->heartbeat.busy, 1);
        test_process(worker)->busy = 0;
        test_after(&t, 16, t.stops, 1);
}

TEST(drain_timeout_waits_for_redis_and_a_fresh_heartbeat)
{
        t.fleet_settings.drain_timeout = 5 * USEC_PER_MIN;
        test_settle(&t);
        test_process(test_worker(&t, 1))->busy = 1;
        command_quiet_worker(test_worker(&t, 1), NULL, t.now);
        test_run(&t, 10);
        test_redis(&t, false);
        test_after(&t, 600, t.stops, 0);
        test_redis(&t, true);
        test_after(&t, 1, t.stops, 0);
        test_after(&t, 12, t.stops, 1);
}

/* A worker that was asked to exit, and ignores that. */
static struct worker *stop_deaf(void)
{
        t.newborn.deaf = true;
        test_settle(&t);
        struct worker *worker = test_worker(&t, 1);
        command_quiet_worker(worker, NULL, t.now);
        while (t.stops == 0)
                test_tick(&t, 1);
        ck_assert_int_eq(worker->state, WORKER_STOPPING);
        return worker;
}

TEST(kills_only_what_ignored_its_stop_for_stop_timeout)
{
        struct worker *worker = stop_deaf();

        test_after(&t, 59, t.kills, 0);
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_EXIT);
        test_after(&t, 1, t.kills, 1);
        ck_assert_uint_eq(test_event(&t, EVENT_KILLED)->index, 1);
        test_after(&t, 1, test_counts(&t).stopping, 0);
}

TEST(never_kills_without_stop_timeout)
{
        t.fleet_settings.stop_timeout = USEC_INFINITY;
        struct worker *worker = stop_deaf();
        test_after(&t, 600, t.kills, 0);
        ck_assert_str_eq(test_waits_for(&t, worker), "is exiting");
        worker->process.remote = true;
        ck_assert_uint_eq(worker_kill_at(worker), USEC_INFINITY);
}

TEST(never_kills_with_redis_away)
{
        struct worker *worker = stop_deaf();

        test_redis(&t, false);
        test_after(&t, 600, t.kills, 0);
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_REDIS);
        test_redis(&t, true);
        test_after(&t, 59, t.kills, 0);
        test_after(&t, 2, t.kills, 1);
}

/* Boot */

TEST(a_worker_that_never_heartbeats_is_ended_after_boot_timeout)
{
        t.fleet->boot_heard = true;
        t.newborn.boot_usec = USEC_INFINITY;
        test_tick(&t, 1);
        test_after(&t, 119, t.stops, 0);
        ck_assert_int_eq(test_worker(&t, 1)->verdict.waits_for, WAIT_FIRST_HEARTBEAT);
        test_after(&t, 1, t.stops, 2);
        ck_assert_uint_eq(test_events(&t, EVENT_BOOT_TIMEOUT), 2);
        ck_assert_uint_eq(t.fleet->crash.count, 2);
        ck_assert_int_eq(test_worker(&t, 1)->reason, REASON_BOOT);
}

TEST_LOOP(boot_timeout_counts_only_unbroken_time_with_redis, 2)
{
        t.fleet->boot_heard = true;
        t.newborn.boot_usec = USEC_INFINITY;
        test_run(&t, 100);
        if (_i == 0) {
                test_redis(&t, false);
                test_run(&t, 300);
                ck_assert_int_eq(test_worker(&t, 1)->verdict.waits_for, WAIT_REDIS);
                test_redis(&t, true);
        } else {
                t.suspended_usec += USEC_PER_HOUR;
        }
        test_after(&t, 119, t.stops, 0);
        test_after(&t, 3, t.stops, 2);
}

TEST(a_worker_that_heartbeats_elsewhere_keeps_its_place_and_gets_no_signal)
{
        t.newborn.boot_usec = USEC_INFINITY;
        test_tick(&t, 1);
        struct worker *worker = test_worker(&t, 1);
        test_process(worker)->sent_usec = 1;
        test_process(worker)->silent = true;
        test_process(test_worker(&t, 2))->sent_usec = 1;
        test_process(test_worker(&t, 2))->silent = true;
        test_after(&t, 1000, t.stops + t.quiets, 0);
        ck_assert_uint_eq(t.starts, 2);
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_ELSEWHERE);
        ck_assert_uint_eq(test_events(&t, EVENT_ELSEWHERE), 2);
        command_quiet_fleet(t.fleet, NULL, t.now);
        test_after(&t, 5, t.stops + t.quiets, 0);
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_ELSEWHERE);
}

TEST(a_worker_that_has_not_beaten_is_quieted_at_its_first_heartbeat)
{
        t.newborn.boot_usec = 30 * USEC_PER_SEC;
        test_tick(&t, 1);
        struct worker *worker = test_worker(&t, 1);
        command_quiet_worker(worker, NULL, t.now);
        test_after(&t, 29, t.quiets, 0);
        ck_assert_int_eq(worker->state, WORKER_STARTING);
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_FIRST_HEARTBEAT);
        test_after(&t, 2, worker->state, WORKER_QUIET);
        ck_assert_int_eq(worker->reason, REASON_OPERATOR);
}

/* Doubt */

TEST(nothing_is_quieted_with_redis_away)
{
        test_settle(&t);
        test_redis(&t, false);
        command_quiet_fleet(t.fleet, NULL, t.now);
        test_after(&t, 600, t.quiets, 0);
        test_redis(&t, true);
        test_after(&t, 15, t.quiets, 2);
}

TEST(a_stale_worker_is_kept_and_not_counted_as_ready)
{
        test_settle(&t);
        struct worker *stale = test_worker(&t, 1);
        test_process(stale)->hung = true;
        test_after(&t, 60, test_counts(&t).ready, 1);
        command_restart(t.fleet, NULL, t.now);
        test_after(&t, 120, stale->state, WORKER_ACTIVE);
        ck_assert(!test_process(stale)->quiet);
        ck_assert_int_eq(stale->verdict.waits_for, WAIT_STALE);
}

TEST(a_suspend_a_step_or_a_stall_defers_quieting)
{
        for (unsigned i = 0; i < 3; i++) {
                test_settle(&t);
                unsigned quiets = t.quiets;
                command_quiet_worker(t.fleet->workers[0], NULL, t.now);
                t.suspended_usec += i == 0 ? USEC_PER_HOUR : 0;
                t.stepped_usec -= i == 1 ? (int64_t)USEC_PER_HOUR : 0;
                test_tick(&t, i == 2 ? 30 : 1);
                ck_assert_uint_eq(test_events(&t, EVENT_TIME_DOUBT), i + 1);
                ck_assert_uint_eq(t.quiets, quiets);
                ck_assert_int_eq(t.fleet->workers[0]->verdict.waits_for, WAIT_FRESH_HEARTBEAT);
                test_after(&t, 20, t.quiets, quiets + 1);
                test_run(&t, 60);
        }
}

TEST(replacing_goes_on_in_doubt)
{
        test_settle(&t);
        t.suspended_usec += USEC_PER_HOUR;
        test_exit(&t, test_worker(&t, 2), 1);
        test_after(&t, 1, test_events(&t, EVENT_TIME_DOUBT), 1);
        ck_assert_uint_eq(t.starts, 3);
}

/* Places and surplus */

TEST(drains_that_hold_every_place_are_named)
{
        t.fleet_settings.max_processes = 3;
        test_settle(&t);
        for (unsigned i = 1; i <= 2; i++)
                test_process(test_worker(&t, i))->busy = 1;
        test_run(&t, 6);
        command_restart(t.fleet, NULL, t.now);
        test_after(&t, 120, test_counts(&t).live, 3);
        ck_assert_uint_eq(t.quiets, 1);
        struct worker *drain = test_worker(&t, 1);
        ck_assert_int_eq(drain->state, WORKER_QUIET);
        ck_assert_uint_eq(drain->heartbeat.busy, 1);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_PLACES);
        ck_assert_uint_eq(test_counts(&t).quiet, 1);
        ck_assert_uint_eq(test_events(&t, EVENT_PLACES_HELD), 1);
        test_process(drain)->busy = 0;
        test_process(test_worker(&t, 2))->busy = 0;
        test_after(&t, 120, t.fleet->rollout.state, ROLLOUT_DONE);
}

TEST(a_restart_that_has_one_place_beyond_the_count_is_no_trouble)
{
        t.fleet_settings.max_processes = 3;
        test_settle(&t);
        test_restart_to(&t, 240, ROLLOUT_DONE);
        ck_assert_uint_eq(test_events(&t, EVENT_PLACES_HELD), 0);
}

TEST(places_taken_by_no_drain_are_shown)
{
        t.fleet_settings.max_processes = 2;
        test_settle(&t);
        command_restart(t.fleet, NULL, t.now);
        test_tick(&t, 1);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_PLACES);
        ck_assert_uint_eq(test_counts(&t).live, 2);
        ck_assert_uint_eq(test_counts(&t).quiet + test_counts(&t).stopping, 0);
        test_after(&t, 2, test_events(&t, EVENT_PLACES_HELD), 0);
}

TEST(of_surplus_the_oldest_leaves_first)
{
        test_settle(&t);
        command_scale(t.fleet, 4, NULL, t.now);
        test_tick(&t, 1);
        test_settle(&t);
        command_scale(t.fleet, 3, NULL, t.now);
        test_after(&t, 1, test_worker(&t, 1)->state, WORKER_QUIET);
        ck_assert_int_eq(test_worker(&t, 1)->reason, REASON_SCALE);
        ck_assert_uint_eq(t.quiets, 1);
}

TEST(of_surplus_those_not_yet_beaten_leave_first)
{
        test_settle(&t);
        command_scale(t.fleet, 3, NULL, t.now);
        test_after(&t, 1, test_worker(&t, 3)->state, WORKER_STARTING);
        command_scale(t.fleet, 2, NULL, t.now);
        test_after(&t, 5, test_worker(&t, 3)->state, WORKER_QUIET);
        ck_assert_uint_eq(t.quiets, 1);
}

TEST(of_surplus_one_over_memory_leaves_first)
{
        test_settle(&t);
        t.fleet_settings.memory_threshold = (uint64_t)500 << 20;
        command_scale(t.fleet, 3, NULL, t.now);
        test_tick(&t, 1);
        test_settle(&t);
        test_worker(&t, 3)->memory.over_threshold = true;
        command_scale(t.fleet, 2, NULL, t.now);
        test_after(&t, 2, t.quiets, 1);
        ck_assert_int_eq(test_worker(&t, 3)->state, WORKER_QUIET);
}

TEST(a_worker_quieted_outside_is_replaced_and_stopped_when_idle)
{
        test_settle(&t);
        test_process(test_worker(&t, 2))->quiet = true;
        test_after(&t, 6, test_worker(&t, 2)->reason, REASON_EXTERNAL);
        ck_assert_uint_eq(t.starts, 3);
        test_after(&t, 15, t.stops, 1);
        ck_assert_uint_eq(t.quiets, 0);
}

TEST(wakes_when_a_worker_becomes_ready)
{
        struct worker *worker = test_spawn(&t);

        test_heartbeat(&t, worker, 100, 0, false);
        test_plan(&t);
        ck_assert_uint_eq(t.pass.plan.wake_at, t.now + 10 * USEC_PER_SEC);
}

/* The time at which it would be asked to exit. */
static enum action_signal signal_of(const struct worker *worker)
{
        for (size_t i = 0; i < t.pass.plan.n_actions; i++)
                if (t.pass.plan.actions[i].kind == ACTION_STOP && t.pass.plan.actions[i].worker == worker)
                        return action_signal(&t.pass.plan.actions[i]);
        ck_abort_msg("it is not");
}

TEST(one_that_was_found_and_shows_nothing_gets_no_signal)
{
        struct worker *worker = test_spawn(&t);

        worker->process.unproven = true;
        ck_assert(worker_poll_items(worker, false, t.now) & POLL_BOOT);
        /* It could come up yet, known to nobody. */
        t.fleet->force = true;
        ck_assert_uint_eq(test_plans(&t, ACTION_STOP, worker), 0);
        t.now = worker_boot_deadline(worker);
        ck_assert_uint_eq(test_plans(&t, ACTION_STOP, worker), 1);
        ck_assert_int_eq(signal_of(worker), ACTION_SIGNAL_NONE);
        observe_stopped(worker, REASON_OPERATOR, 0, t.now);
        ck_assert_int_eq(worker->state, WORKER_GONE);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
}

TEST(one_that_was_found_and_has_booted_is_a_worker_like_any_other)
{
        struct worker *worker = test_spawn(&t);

        worker->process.unproven = true;
        observe_booted(worker, true, t.now);
        ck_assert(!worker->process.unproven);
        ck_assert(!worker->process.booted);
        ck_assert_uint_eq(test_events(&t, EVENT_ELSEWHERE), 0);
        t.fleet->force = true;
        ck_assert_uint_eq(test_plans(&t, ACTION_STOP, worker), 1);
        ck_assert_int_eq(signal_of(worker), ACTION_SIGNAL_STOP);
}

TEST_MAIN("plan", .each = {setup, teardown})
