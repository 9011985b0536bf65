/* SPDX-License-Identifier: MIT */
/* What ends a worker's life early: memory, churn, crashes and the wait after them. */
#include "decide/command.h"
#include "model/counts.h"
#include "model/describe.h"
#include "observe/observe.h"
#include "quoting.h"
#include "world.h"

TEST_WORLD(2)
{
}

/* Memory */

static void memory(struct worker *worker, unsigned megabytes)
{
        observe_memory(worker, (uint64_t)megabytes << 20, t.now);
}

TEST(memory_counts_after_three_samples_in_a_row_and_sticks)
{
        struct worker *worker = test_spawn_ready(&t);

        t.fleet_settings.memory_threshold = (uint64_t)500 << 20;
        memory(worker, 600);
        memory(worker, 600);
        memory(worker, 500);
        memory(worker, 600);
        memory(worker, 600);
        ck_assert(!worker->memory.over_threshold);
        memory(worker, 600);
        ck_assert(worker->memory.over_threshold);
        memory(worker, 100);
        ck_assert(worker->memory.over_threshold);
        ck_assert_uint_eq(test_events(&t, EVENT_MEMORY_OVER), 1);
        ck_assert_uint_eq(test_event(&t, EVENT_MEMORY_OVER)->index, worker->index);
        t.fleet_settings.memory_threshold = 0;
        memory(worker, 900);
        ck_assert(!worker->memory.over_threshold);
}

TEST(memory_limit_counts_at_once)
{
        struct worker *worker = test_spawn_ready(&t);

        t.fleet_settings.memory_limit = (uint64_t)500 << 20;
        memory(worker, 500);
        ck_assert(!worker->memory.over_limit);
        memory(worker, 501);
        ck_assert(worker->memory.over_limit);
}

static struct worker *replacement(bool heartbeats)
{
        struct worker *worker = test_spawn(&t);

        t.fleet_settings.memory_threshold = (uint64_t)500 << 20;
        worker->started_for = REASON_MEMORY;
        if (heartbeats)
                test_heartbeat(&t, worker, 100, 0, false);
        return worker;
}

static void grow(struct worker *worker)
{
        for (unsigned i = 0; i < 3; i++)
                memory(worker, 600);
}

TEST_LOOP(a_replacement_that_grows_within_10_min_is_churn, 2)
{
        struct worker *worker = replacement(true);

        t.now += (9 + (usec_t)_i) * USEC_PER_MIN;
        grow(worker);
        ck_assert_uint_eq(t.fleet->churn.count, _i == 0);
        ck_assert_uint_eq(test_events(&t, EVENT_MEMORY_CHURN), _i == 0);
}

TEST(a_replacement_over_the_threshold_while_it_boots_is_churn)
{
        struct worker *worker = replacement(false);

        grow(worker);
        test_heartbeat(&t, worker, 100, 0, false);
        memory(worker, 600);
        ck_assert(worker->memory.over_threshold);
        ck_assert_uint_eq(t.fleet->churn.count, 1);
}

TEST(churn_is_forgotten_after_10_min_without)
{
        struct worker *worker = replacement(true);

        grow(worker);
        struct worker *next = replacement(true);
        t.now += 10 * USEC_PER_MIN;
        next->active_at = t.fleet->churn.failed_at;
        observe_time(t.world, t.now);
        ck_assert_uint_eq(t.fleet->churn.count, 0);
}

/* Crashes */

TEST(short_lives_back_off)
{
        for (unsigned i = 0; i < 5; i++) {
                struct worker *worker = test_spawn(&t);

                test_exit(&t, worker, 1);
                fleet_reap(t.fleet, test_process_free);
                ck_assert_uint_eq(t.fleet->crash.count, i + 1);
                ck_assert_uint_le(t.fleet->crash.next_at, t.now + 60 * USEC_PER_SEC);
        }
        ck_assert_uint_eq(test_events(&t, EVENT_CRASHED), t.fleet->crash.count);
}

static bool names_worker(const char *text, unsigned index)
{
        char name[32];

        snprintf(name, sizeof(name), "default/%u ", index);
        return strncmp(text, name, strlen(name)) == 0;
}

static enum crash_state crash_state(void)
{
        return fleet_crash_state(t.fleet, t.now);
}

/* One worker dies as often as makes a loop, and then lives. */
static void fail_and_live(void)
{
        test_settle(&t);
        ck_assert_int_eq(crash_state(), CRASH_NONE);
        t.newborn.die_usec = 100 * USEC_PER_MSEC;
        test_exit(&t, test_worker(&t, 1), 1);
        while (t.fleet->crash.count < 3)
                test_tick(&t, 1);
        t.newborn.die_usec = USEC_INFINITY;
}

TEST(a_fleet_that_is_whole_again_is_reported_to_recover_until_its_row_is_over)
{
        fail_and_live();
        while (test_counts(&t).starting == 0) {
                ck_assert_int_eq(crash_state(), CRASH_FAILING);
                test_tick(&t, 1);
        }
        ck_assert_int_eq(crash_state(), CRASH_FAILING);
        while (test_counts(&t).active < 2)
                test_tick(&t, 1);
        ck_assert_int_eq(crash_state(), CRASH_RECOVERING);
        test_run(&t, 50);
        ck_assert_uint_eq(t.fleet->crash.count, 3);
        ck_assert_uint_eq((fleet_recovered_at(t.fleet) - t.now + USEC_PER_SEC - 1) / USEC_PER_SEC, 10);
        ck_assert(names_worker(t.fleet->crash_last, 1) && !t.fleet->crash_last_apart);
        test_after(&t, 11, crash_state(), CRASH_NONE);
}

TEST(a_fleet_that_fails_says_when_the_next_start_is_and_of_what_the_last_one_died)
{
        fail_and_live();
        t.fleet->crash.next_at = t.now + 30 * USEC_PER_SEC;
        test_plan(&t);
        ck_assert_uint_eq(t.fleet->crash.count, 3);
        ck_assert_uint_eq(fleet_next_start_at(t.fleet, t.now), t.now + 30 * USEC_PER_SEC);
        ck_assert(names_worker(t.fleet->crash_last, 1) && !t.fleet->crash_last_apart);
        /* A long life is not of the row. */
        test_run(&t, 10);
        test_exit(&t, test_worker(&t, 2), 1);
        test_plan(&t);
        ck_assert_uint_eq(t.fleet->crash.count, 3);
        ck_assert(names_worker(t.fleet->crash_last, 2) && t.fleet->crash_last_apart);
}

TEST(where_none_is_to_be_started_no_start_is_named)
{
        test_settle(&t);
        t.newborn.die_usec = 100 * USEC_PER_MSEC;
        command_restart(t.fleet, NULL, t.now);
        while (t.fleet->rollout.state == ROLLOUT_RUNNING)
                test_tick(&t, 1);
        ck_assert_int_eq(t.fleet->rollout.state, ROLLOUT_HALTED);
        t.fleet->crash.next_at = t.now + USEC_PER_MIN;
        test_plan(&t);
        ck_assert_uint_eq(fleet_next_start_at(t.fleet, t.now), 0);
        ck_assert_int_eq(crash_state(), CRASH_SETTLED);
        test_worker(&t, 1)->state = WORKER_QUIET;
        test_plan(&t);
        ck_assert_uint_eq(fleet_next_start_at(t.fleet, t.now), t.fleet->crash.next_at);
        ck_assert_int_eq(crash_state(), CRASH_FAILING);
}

TEST(a_crash_loop_is_reported_once_until_it_is_over)
{
        test_settle(&t);
        t.newborn.die_usec = 100 * USEC_PER_MSEC;
        test_exit(&t, test_worker(&t, 1), 1);
        for (unsigned round = 1; round <= 2; round++) {
                test_run(&t, 600);
                ck_assert_uint_gt(t.fleet->crash.count, 3);
                ck_assert_uint_eq(test_events(&t, EVENT_CRASH_LOOP), round);
                ck_assert_ptr_eq(test_event(&t, EVENT_CRASH_LOOP)->fleet, t.fleet);
                ck_assert(names_worker(t.fleet->crash_last, 1));
                command_start(t.fleet, NULL, t.now);
        }
}

TEST(no_crash_loop_is_reported_of_for_want_of_redis_nor_after_a_halt)
{
        test_settle(&t);
        t.newborn.die_usec = 100 * USEC_PER_MSEC;
        test_redis(&t, false);
        test_exit(&t, test_worker(&t, 1), 1);
        test_run(&t, 600);
        ck_assert_uint_gt(t.fleet->crash.count, 3);
        ck_assert_uint_eq(test_events(&t, EVENT_CRASH_LOOP), 0);
        test_redis(&t, true);
        t.newborn.die_usec = USEC_INFINITY;
        test_run(&t, 120);
        t.newborn.die_usec = 100 * USEC_PER_MSEC;
        test_restart_to(&t, 600, ROLLOUT_HALTED);
        ck_assert_uint_ge(t.fleet->crash.count, 3);
        ck_assert_uint_eq(test_events(&t, EVENT_CRASH_LOOP), 0);
}

TEST_LOOP(a_life_is_short_when_it_ended_before_it_was_ready, 4)
{
        static const unsigned trials[] = {1, 10, 30, 600};
        usec_t enough = MAX(trials[_i], 10U) * USEC_PER_SEC;

        t.fleet_settings.ready_after = trials[_i] * USEC_PER_SEC;
        struct worker *worker = test_spawn(&t);
        test_heartbeat(&t, worker, 100, 0, false);
        t.now += enough - 1;
        struct worker *other = test_spawn(&t);
        test_exit(&t, worker, 1);
        ck_assert_uint_eq(t.fleet->crash.count, 1);
        test_heartbeat(&t, other, 100, 0, false);
        t.now += enough;
        test_exit(&t, other, 1);
        ck_assert_uint_eq(t.fleet->crash.count, 1);
}

TEST(after_a_short_trial_an_end_delays_the_next_start_and_is_no_failure_of_the_release)
{
        t.fleet_settings.ready_after = 0;
        command_restart(t.fleet, NULL, t.now);
        struct worker *worker = test_spawn(&t);
        test_heartbeat(&t, worker, 100, 0, false);
        t.now += USEC_PER_SEC;
        test_exit(&t, worker, 1);
        ck_assert_uint_eq(t.fleet->crash.count, 1);
        ck_assert_uint_gt(t.fleet->crash.next_at, t.now);
        ck_assert_uint_eq(t.fleet->rollout.failures, 0);
}

static void fail_once(void)
{
        test_exit(&t, test_spawn(&t), 1);
        fleet_reap(t.fleet, test_process_free);
        ck_assert_uint_eq(t.fleet->crash.count, 1);
}

TEST(a_long_life_is_replaced_at_once_though_short_ones_back_off)
{
        test_settle(&t);
        test_run(&t, 15);
        t.newborn.die_usec = USEC_PER_SEC;
        test_exit(&t, test_worker(&t, 1), 1);
        while (t.fleet->crash.next_at < t.now + 10 * USEC_PER_SEC)
                test_tick(&t, 1);
        struct worker *old = test_worker(&t, 2);
        ck_assert_uint_ge(t.now - old->active_at, 10 * USEC_PER_SEC);
        t.newborn.die_usec = USEC_INFINITY;
        unsigned starts = t.starts;
        test_exit(&t, old, 1);
        test_after(&t, 1, t.starts, starts + 1);
        test_after(&t, 5, t.starts, starts + 1);
}

TEST(a_limit_below_the_boot_size_does_not_churn)
{
        test_settle(&t);
        t.fleet_settings.memory_limit = 100;
        t.newborn.memory_bytes = 200;
        for (unsigned i = 1; i <= 4; i++)
                if (test_worker(&t, i))
                        test_process(test_worker(&t, i))->memory_bytes = 200;
        test_run(&t, 600);
        ck_assert_uint_ge(t.fleet->crash.count, 5);
        ck_assert_uint_le(t.starts, 60);
}

TEST(a_worker_once_seen_booted_is_left_alone_though_a_later_look_fails)
{
        struct worker *worker = test_spawn(&t);

        test_process(worker)->boot_usec = USEC_INFINITY;
        observe_booted(worker, true, t.now);
        observe_booted(worker, false, t.now);
        ck_assert(worker->process.booted);
}

/* After sixty seconds at least. */
TEST_LOOP(a_row_of_short_lives_goes_on_until_one_is_ready, 2)
{
        usec_t ready_after = (_i == 0 ? 30 : 90) * USEC_PER_SEC;

        t.fleet_settings.ready_after = ready_after;
        fail_once();
        test_heartbeat(&t, test_spawn(&t), 100, 0, false);
        t.now += MAX(ready_after, USEC_PER_MIN) - 1;
        observe_time(t.world, t.now);
        ck_assert_uint_eq(t.fleet->crash.count, 1);
        t.now++;
        observe_time(t.world, t.now);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
        ck_assert_uint_eq(t.fleet->crash.next_at, 0);
}

TEST_LOOP(redis_coming_back_resets_a_backoff_unless_an_earlier_sqmgr_had_it, 2)
{
        bool was_away = _i == 1;

        test_redis(&t, false);
        fail_once();
        t.fleet->redis_at = 0;
        t.fleet->continued = true;
        if (was_away)
                observe_redis(t.fleet, false, t.now);
        test_redis(&t, true);
        ck_assert_uint_eq(t.fleet->crash.count, was_away ? 0 : 1);
        test_redis(&t, false);
        test_redis(&t, true);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
}

TEST(restart_and_start_reset_the_backoff)
{
        fail_once();
        command_restart(t.fleet, NULL, t.now);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
        fail_once();
        command_start(t.fleet, NULL, t.now);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
}

TEST(a_failed_start_backs_off_and_says_why)
{
        observe_start_failed(t.fleet, 3, EMFILE, t.now);
        ck_assert_uint_eq(t.fleet->shortage.count, 1);
        ck_assert_uint_gt(t.fleet->shortage.next_at, t.now);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
        ck_assert_str_eq(test_event_text(&t, EVENT_START_FAILED),
                         "default/3 could not be started: error in sqmgr itself: Too many open files. Run "
                         "'sqmgrctl doctor'");
}

TEST(a_worker_that_cannot_be_watched_is_no_failed_start)
{
        const struct worker *first = observe_started(t.fleet, 1, REASON_NONE, 501, 1, t.now);

        /* Nothing would report its exit. */
        observe_unwatched((struct worker *)first, ENOMEM, t.now);
        ck_assert_int_eq(first->state, WORKER_GONE);

        struct worker *second = observe_started(t.fleet, 2, REASON_NONE, 502, 1, t.now);
        second->handle = (struct process *)&t;
        observe_unwatched(second, EMFILE, t.now);
        ck_assert_int_eq(second->state, WORKER_STOPPING);
        ck_assert_uint_eq(t.fleet->shortage.count, 1);
        observe_exit(second, &(struct exit_status){.known = true, .by_signal = true, .status = SIGKILL},
                     t.now);
        ck_assert_int_eq(second->state, WORKER_GONE);
        second->handle = NULL;
        ck_assert_uint_eq(t.fleet->crash.count, 0);
        ck_assert_uint_eq(test_events(&t, EVENT_CRASHED), 0);
}

TEST(each_unasked_end_is_a_crash)
{
        const struct exit_status exits[] = {
                {.known = true, .status = 7},
                {.known = true, .status = 9, .by_signal = true},
                {.known = false},
                {.launch_error = QUOTED("cannot run 'x'")},
                {.known = true, .status = 1, .log_tail = QUOTED("boom\nbang")},
        };

        for (size_t i = 0; i < ELEMENTSOF(exits); i++) {
                struct worker *worker = test_spawn(&t);

                observe_exit(worker, &exits[i], t.now);
                ck_assert_str_eq(test_event_text(&t, EVENT_CRASHED), t.fleet->crash_last);
                ck_assert_int_eq(worker->state, WORKER_GONE);
                ck_assert_int_eq(worker->reason, REASON_CRASH);
        }
        ck_assert_uint_eq(test_events(&t, EVENT_CRASHED), ELEMENTSOF(exits));
}

static void assert_quoted(const char *expected)
{
        ck_assert_str_eq(quoted_reveal(&t.fleet->crash_quoted), expected);
}

static void die_with_token(uint64_t token)
{
        observe_exit(test_spawn(&t), &(struct exit_status){.known = true, .status = 1, .lines_token = token},
                     t.now);
}

TEST(last_lines_that_come_later_are_reported)
{
        die_with_token(7);
        assert_quoted("");
        observe_log_tail(t.fleet, 7, QUOTED("boom\nbang"));
        assert_quoted("boom\nbang");
        ck_assert_str_eq(test_event_text(&t, EVENT_LAST_LINES), t.fleet->crash_last);
        observe_log_tail(t.fleet, 7, QUOTED("again"));
        assert_quoted("boom\nbang");
        ck_assert_uint_eq(test_events(&t, EVENT_LAST_LINES), 1);
}

TEST(last_lines_of_an_earlier_death_are_not_reported)
{
        die_with_token(1);
        die_with_token(2);
        observe_log_tail(t.fleet, 1, QUOTED("early"));
        assert_quoted("");
        observe_log_tail(t.fleet, 2, QUOTED("late"));
        assert_quoted("late");

        die_with_token(4);
        die_with_token(0);
        observe_log_tail(t.fleet, 4, QUOTED("early"));
        assert_quoted("");
        ck_assert_uint_eq(test_events(&t, EVENT_LAST_LINES), 1);
}

TEST(last_lines_that_there_are_none_of_leave_all_as_it_is)
{
        die_with_token(1);
        observe_log_tail(t.fleet, 1, QUOTED(""));
        assert_quoted("");
        ck_assert_uint_eq(test_events(&t, EVENT_LAST_LINES), 0);
}

TEST(a_worker_that_was_reported_to_exit_is_no_crash)
{
        struct worker *worker = test_spawn_quiet(&t);

        observe_stopped(worker, REASON_OPERATOR, 0, t.now);
        test_exit(&t, worker, 0);
        ck_assert_uint_eq(test_events(&t, EVENT_CRASHED), 0);
        ck_assert_uint_eq(test_events(&t, EVENT_GONE), 1);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
}

TEST(a_quiet_worker_that_dies_does_not_back_off)
{
        struct worker *worker = test_spawn_quiet(&t);

        test_exit(&t, worker, 1);
        ck_assert_uint_eq(test_events(&t, EVENT_CRASHED), 1);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
        ck_assert_int_eq(worker->reason, REASON_OPERATOR);
}

TEST_MAIN("lives", .each = {setup, teardown})
