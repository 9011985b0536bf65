/* SPDX-License-Identifier: MIT */
/* A restart: new workers first, old ones quieted as they become ready, and a bad release that costs nothing.
 */
/* promises: P2 P6 P7 P8 */
#include "decide/command.h"
#include "golden.h"
#include "model/deadlines.h"
#include "model/describe.h"
#include "model/world.h"
#include "observe/observe.h"
#include "quoting.h"
#include "settings_text.h"
#include "world.h"
#include <syslog.h>

#define MB (UINT64_C(1) << 20)

TEST_WORLD(4)
{
}

static unsigned most_extra(unsigned seconds)
{
        unsigned most = 0;

        for (unsigned i = 0; i < seconds; i++) {
                test_tick(&t, 1);
                struct fleet_counts counts = test_counts(&t);
                most = MAX(most, counts.active + counts.starting);
        }
        return most;
}

TEST(new_workers_start_at_once)
{
        test_settle(&t);
        test_restart(&t);
        ck_assert_uint_eq(t.fleet->rollout.total, 4);
        test_after(&t, 1, t.starts, 8);
        ck_assert_uint_eq(t.quiets, 0);
}

TEST(each_old_one_is_quieted_as_a_new_one_is_ready)
{
        test_settle(&t);
        t.fleet_settings.restart_surge = (struct share){.value = 1};
        test_restart(&t);
        while (test_rollout(&t) == ROLLOUT_RUNNING) {
                ck_assert_uint_ge(test_counts(&t).ready, 4);
                ck_assert_uint_le(test_counts(&t).active + test_counts(&t).starting, 5);
                test_tick(&t, 1);
        }
        ck_assert_uint_eq(t.quiets, 4);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_DONE);
        ck_assert_uint_eq(test_counts(&t).outdated, 0);
        ck_assert_uint_eq(test_events(&t, EVENT_ROLLOUT_DONE), 1);
}

TEST(a_restart_that_is_done_says_how_many_still_drain)
{
        test_settle(&t);
        test_process(test_worker(&t, 1))->busy = 1;
        test_process(test_worker(&t, 2))->busy = 1;
        test_run(&t, 6);
        test_restart(&t);
        while (test_rollout(&t) == ROLLOUT_RUNNING)
                test_tick(&t, 1);
        ck_assert_uint_ge(fleet_count(t.fleet, t.now).draining, 2);
        ck_assert_uint_eq(test_events(&t, EVENT_ROLLOUT_DONE), 1);
        test_after(&t, 60, fleet_count(t.fleet, t.now).draining, 2);
}

TEST(an_old_worker_is_quieted_in_the_tick_in_which_a_new_one_is_ready)
{
        test_settle(&t);
        t.fleet_settings.restart_surge = (struct share){.value = 1};
        test_restart(&t);
        test_tick(&t, 1);
        struct worker *new = test_worker(&t, 5);
        while (!worker_ready(new, t.now + USEC_PER_SEC))
                test_tick(&t, 1);
        ck_assert_uint_eq(t.quiets, 0);
        test_after(&t, 1, t.quiets, 1);
}

TEST(workers_that_never_heartbeat_do_not_keep_the_next_release_from_starting)
{
        test_settle(&t);
        t.newborn.boot_usec = USEC_INFINITY;
        test_restart(&t);
        test_after(&t, 1, test_counts(&t).starting, 4);
        t.newborn.boot_usec = 3 * USEC_PER_SEC;
        test_restart(&t);
        test_after(&t, 1, test_counts(&t).starting, 8);
        test_after(&t, 60, test_counts(&t).ready, 4);
        ck_assert_uint_le(test_counts(&t).live, fleet_max_processes(t.fleet));
}

TEST(a_restart_without_a_place_for_a_new_worker_halts_and_says_so)
{
        t.fleet_settings.max_processes = 4;
        test_settle(&t);
        test_restart_to(&t, 601, ROLLOUT_HALTED);
        ck_assert_uint_eq(t.fleet->rollout.failures, 0);
        ck_assert_uint_eq(test_counts(&t).live, fleet_max_processes(t.fleet));
        ck_assert_uint_eq(t.quiets, 0);
}

TEST(a_new_worker_that_dies_before_it_is_ready_has_failed)
{
        t.fleet_settings.ready_after = 60 * USEC_PER_SEC;
        test_settle(&t);
        t.newborn.die_usec = 50 * USEC_PER_SEC;
        test_restart_to(&t, 60, ROLLOUT_HALTED);
        ck_assert_uint_eq(t.quiets, 0);
}

TEST(running_jobs_finish_on_the_old_code)
{
        test_settle(&t);
        test_process(test_worker(&t, 1))->busy = 3;
        test_run(&t, 6);
        test_restart_to(&t, 600, ROLLOUT_DONE);
        ck_assert_int_eq(test_worker(&t, 1)->state, WORKER_QUIET);
        ck_assert_uint_eq(t.stops, 3);
}

TEST(surge_is_a_number_or_a_share_rounded_up)
{
        static const struct {
                struct share surge;
                unsigned extra;
        } cases[] = {{{1, false}, 1}, {{2, false}, 2}, {{30, true}, 2}, {{25, true}, 1}, {{100, true}, 4}};

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                test_settle(&t);
                t.fleet_settings.restart_surge = cases[i].surge;
                ck_assert_uint_eq(fleet_surge(t.fleet), cases[i].extra);
                test_restart(&t);
                ck_assert_uint_eq(most_extra(200), 4 + cases[i].extra);
                ck_assert_int_eq(test_rollout(&t), ROLLOUT_DONE);
        }
}

TEST(without_surge_one_old_worker_goes_first)
{
        test_settle(&t);
        t.fleet_settings.restart_surge = (struct share){.value = 0};
        t.fleet_settings.max_processes = 4;
        test_restart(&t);
        test_after(&t, 1, t.quiets, 1);
        test_after(&t, 2, t.starts, 4);
        ck_assert_uint_eq(t.quiets, 1);
        for (unsigned i = 0; i < 600 && test_rollout(&t) == ROLLOUT_RUNNING; i++) {
                test_tick(&t, 1);
                ck_assert_uint_ge(test_counts(&t).active, 3);
                ck_assert_uint_le(test_counts(&t).live, 4);
        }
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_DONE);
}

TEST(a_release_that_dies_at_boot_halts_after_three_failures)
{
        test_settle(&t);
        t.newborn.die_usec = 100 * USEC_PER_MSEC;
        t.fleet_settings.restart_surge = (struct share){.value = 1};
        test_restart(&t);
        ck_assert_int_eq(test_run_out(&t, 300), ROLLOUT_HALTED);
        ck_assert_uint_eq(t.starts, 7);
        ck_assert_uint_eq(t.quiets, 0);
        ck_assert_uint_eq(test_counts(&t).ready, 4);
        ck_assert_uint_eq(t.fleet->rollout.failures, 3);
        ck_assert_uint_eq(test_events(&t, EVENT_ROLLOUT_HALTED), 1);
        test_after(&t, 600, t.quiets, 0);
}

/* The old worker's memory has nothing to do with the release, but its replacement has. */
TEST(a_worker_that_a_bad_release_keeps_from_being_replaced_names_it)
{
        test_settle(&t);
        struct worker *large = test_worker(&t, 1);
        usec_t lives = t.newborn.die_usec;

        t.fleet_settings.memory_threshold = 500 * MB;
        t.newborn.die_usec = 100 * USEC_PER_MSEC;
        test_restart(&t);
        ck_assert_int_eq(test_run_out(&t, 300), ROLLOUT_HALTED);
        for (unsigned i = 0; i < 3; i++, t.now += USEC_PER_SEC)
                observe_memory(large, 600 * MB, t.now);
        test_process(large)->memory_bytes = 600 * MB;
        test_after(&t, 120, t.quiets, 0);
        ck_assert_int_eq(large->verdict.waits_for, WAIT_READY_OTHERS);
        golden_begin();
        golden_add("halted", test_waits_for(&t, large));
        command_abort(t.fleet, NULL, t.now);
        test_run(&t, 20);
        golden_add("aborted", test_waits_for(&t, large));
        golden_end("describe", "blocked by a release");
        /* The way out. */
        t.newborn.die_usec = lives;
        t.newborn.memory_bytes = 10 * MB;
        command_abort(t.fleet, NULL, t.now);
        test_after(&t, 300, t.quiets, 1);
}

TEST(a_halt_is_reported_with_the_last_lines_of_the_failure_that_it_names)
{
        test_settle(&t);
        test_restart(&t);
        for (uint64_t token = 1; token <= 4; token++)
                observe_exit(test_spawn(&t),
                             &(struct exit_status){.known = true, .status = 1, .lines_token = token}, t.now);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_HALTED);
        observe_log_tail(t.fleet, 2, QUOTED("second"));
        observe_log_tail(t.fleet, 3, QUOTED("third"));
        ck_assert_str_eq(quoted_reveal(&t.fleet->rollout.quoted), "third");
        ck_assert_str_eq(test_event_text(&t, EVENT_LAST_LINES), t.fleet->rollout.error);
        /* Another one has died since. */
        ck_assert(quoted_is_empty(&t.fleet->crash_quoted));
        observe_log_tail(t.fleet, 4, QUOTED("fourth"));
        ck_assert_str_eq(quoted_reveal(&t.fleet->crash_quoted), "fourth");
        ck_assert_str_eq(quoted_reveal(&t.fleet->rollout.quoted), "third");

        test_restart(&t);
        observe_log_tail(t.fleet, 3, QUOTED("late"));
        ck_assert_str_eq(t.fleet->rollout.error, "");
}

TEST(keeps_old_workers_when_new_ones_never_boot)
{
        test_settle(&t);
        t.newborn.boot_usec = USEC_INFINITY;
        test_restart_to(&t, 1200, ROLLOUT_HALTED);
        ck_assert_uint_eq(test_counts(&t).ready, 4);
        ck_assert_uint_eq(t.quiets, 0);
        ck_assert_uint_ge(test_events(&t, EVENT_BOOT_TIMEOUT), 3);
        ck_assert_uint_eq(t.fleet->rollout.failures, 3);
}

TEST(a_release_that_dies_soon_after_its_first_heartbeat_halts)
{
        test_settle(&t);
        t.newborn.die_usec = 30 * USEC_PER_SEC;
        t.fleet_settings.ready_after = 30 * USEC_PER_SEC;
        ck_assert_int_eq(test_restart_out(&t), ROLLOUT_HALTED);
        ck_assert_uint_eq(t.quiets, 0);
        ck_assert_uint_ge(test_events(&t, EVENT_CRASHED), 3);
}

/* With the defaults, whenever within them it dies: the old workers are not touched, and another follows none.
 */
TEST_LOOP(a_release_that_dies_on_trial_replaces_nobody, 7)
{
        static const unsigned lives[] = {1, 9, 10, 11, 15, 25, 29};
        _cleanup_settings_ struct settings *defaults = read_good("[fleet:a]\ncommand=run");

        ck_assert_ptr_nonnull(defaults);
        t.fleet_settings.ready_after = defaults->fleets[0]->ready_after;
        t.fleet_settings.restart_surge = defaults->fleets[0]->restart_surge;
        test_settle(&t);
        t.newborn.die_usec = t.newborn.boot_usec + lives[_i] * USEC_PER_SEC;
        ck_assert_int_eq(test_restart_out(&t), ROLLOUT_HALTED);
        test_after(&t, 300, t.quiets, 0);
        for (unsigned i = 1; i <= 4; i++)
                ck_assert(worker_ready(test_worker(&t, i), t.now));
        ck_assert_uint_ge(t.fleet->crash.count, 3);
}

TEST(a_failure_holds_further_quiets_until_a_new_worker_is_ready)
{
        test_settle(&t);
        t.fleet_settings.restart_surge = (struct share){.value = 1};
        test_restart(&t);
        test_tick(&t, 1);
        test_exit(&t, test_worker(&t, 5), 1);
        t.newborn.boot_usec = 60 * USEC_PER_SEC;
        test_after(&t, 30, t.fleet->rollout.failures, 1);
        ck_assert_uint_eq(t.quiets, 0);
        ck_assert_int_eq(test_worker(&t, 1)->verdict.waits_for, WAIT_RELEASE);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_RELEASE);
        test_run(&t, 30);
        t.newborn.boot_usec = 3 * USEC_PER_SEC;
        test_after(&t, 240, test_rollout(&t), ROLLOUT_DONE);
}

TEST(a_failure_after_all_new_workers_are_ready_holds_nothing)
{
        test_settle(&t);
        t.fleet_settings.active_process_count = 3;
        test_worker(&t, 1)->generation--;
        t.fleet->rollout.state = ROLLOUT_RUNNING;
        t.fleet->rollout.failures = 1;
        t.fleet->rollout.failed_at = t.now;
        test_after(&t, 1, t.quiets, 1);
        test_after(&t, 60, test_rollout(&t), ROLLOUT_DONE);
}

TEST(failures_with_redis_away_do_not_count)
{
        test_settle(&t);
        test_redis(&t, false);
        t.newborn.die_usec = 100 * USEC_PER_MSEC;
        test_restart_to(&t, 300, ROLLOUT_RUNNING);
        ck_assert_uint_eq(t.fleet->rollout.failures, 0);
        ck_assert_uint_eq(t.quiets, 0);
        t.newborn.die_usec = USEC_INFINITY;
        test_redis(&t, true);
        test_after(&t, 120, test_rollout(&t), ROLLOUT_DONE);
}

TEST(a_restart_starts_nothing_while_redis_is_away)
{
        for (unsigned surge = 0; surge <= 2; surge++) {
                t.fleet_settings.restart_surge = (struct share){.value = surge};
                test_settle(&t);
                unsigned starts = t.starts, quiets = t.quiets;
                test_redis(&t, false);
                test_restart_to(&t, 1, ROLLOUT_RUNNING);
                test_run(&t, 300);
                ck_assert_uint_eq(t.starts, starts);
                ck_assert_uint_eq(t.quiets, quiets);
                ck_assert_str_eq(test_fleet_waits_for(&t), "waits for Redis");
                /* One that dies is replaced, and no other. */
                test_exit(&t, t.fleet->workers[0], 1);
                test_after(&t, 60, t.starts, starts + 1);
                test_run(&t, 60);
                ck_assert_uint_eq(t.starts, starts + 1);
                test_redis(&t, true);
                test_after(&t, 600, test_rollout(&t), ROLLOUT_DONE);
        }
}

TEST(a_restart_during_an_outage_starts_nothing_beside_workers_that_boot)
{
        test_settle(&t);
        test_redis(&t, false);
        t.newborn.boot_usec = USEC_INFINITY;
        test_exit(&t, t.fleet->workers[0], 1);
        test_run(&t, 60);
        unsigned starts = t.starts;
        test_restart(&t);
        test_run(&t, 60);
        ck_assert_uint_eq(t.starts, starts);
}

TEST(a_restart_waits_until_redis_accepts_writes)
{
        test_settle(&t);
        unsigned starts = t.starts;
        t.redis_up = false; /* no heartbeat is written */
        observe_server(t.fleet, READER_STATE_REFUSING, t.now);
        ck_assert_ptr_nonnull(strstr(test_event_text(&t, EVENT_REDIS_DOWN), "is refusing writes"));
        test_restart_to(&t, 1, ROLLOUT_RUNNING);
        test_run(&t, 60);
        ck_assert_uint_eq(t.starts, starts);
        ck_assert_str_eq(test_fleet_waits_for(&t), "waits until Redis accepts writes");
        test_redis(&t, true);
        test_after(&t, 240, test_rollout(&t), ROLLOUT_DONE);
}

TEST(a_crash_during_an_outage_is_a_warning)
{
        test_settle(&t);
        test_exit(&t, t.fleet->workers[0], 1);
        ck_assert_int_eq(event_alert_level(test_event(&t, EVENT_CRASHED)), LOG_ERR);
        test_run(&t, 60);
        world_events_clear(t.world);
        test_redis(&t, false);
        ck_assert_int_eq(event_alert_level(test_event(&t, EVENT_REDIS_DOWN)), LOG_ERR);
        test_exit(&t, t.fleet->workers[1], 1);
        ck_assert_int_eq(event_alert_level(test_event(&t, EVENT_CRASHED)), LOG_WARNING);
        test_redis(&t, true);
        ck_assert_int_eq(event_alert_level(test_event(&t, EVENT_REDIS_UP)), LOG_ERR);
}

TEST(a_boot_timeout_counts_though_redis_was_away_before)
{
        test_settle(&t);
        t.newborn.boot_usec = USEC_INFINITY;
        test_restart(&t);
        test_run(&t, 5);
        test_redis(&t, false);
        test_run(&t, 2);
        test_redis(&t, true);
        test_after(&t, 125, test_rollout(&t), ROLLOUT_HALTED);
}

TEST(a_start_that_sqmgr_itself_cannot_make_does_not_count)
{
        test_settle(&t);
        t.start_error = EMFILE;
        test_restart(&t);
        /* Beyond rollout_timeout, too. */
        test_run(&t, 1200);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_RUNNING);
        ck_assert_uint_eq(t.fleet->rollout.failures, 0);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
        ck_assert_uint_eq(test_events(&t, EVENT_PLACES_HELD), 1);
        ck_assert(strstr(test_fleet_waits_for(&t), "sqmgr could not create a process (Too many open files)"));
        t.start_error = 0;
        test_after(&t, 300, test_rollout(&t), ROLLOUT_DONE);
        ck_assert_uint_eq(t.fleet->shortage.count, 0);
}

TEST(the_next_restart_goes_on_after_a_halt)
{
        test_settle(&t);
        t.newborn.die_usec = 100 * USEC_PER_MSEC;
        test_restart_to(&t, 120, ROLLOUT_HALTED);
        t.newborn.die_usec = USEC_INFINITY;
        test_restart(&t);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
        ck_assert_str_eq(t.fleet->rollout.error, "");
        test_after(&t, 120, test_rollout(&t), ROLLOUT_DONE);
        ck_assert_uint_eq(t.fleet->generation, 3);
}

TEST(the_newest_generation_wins)
{
        test_settle(&t);
        test_restart(&t);
        test_run(&t, 5);
        test_restart(&t);
        ck_assert_uint_eq(t.fleet->rollout.total, 8);
        test_after(&t, 200, test_rollout(&t), ROLLOUT_DONE);
        ck_assert_uint_eq(test_counts(&t).active, 4);
        for (size_t i = 0; i < t.fleet->n_workers; i++)
                ck_assert_uint_eq(t.fleet->workers[i]->generation, 3);
}

TEST(an_abort_ends_it_and_the_new_ones_leave_first)
{
        test_settle(&t);
        test_restart(&t);
        test_run(&t, 8);
        command_abort(t.fleet, NULL, t.now);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_ABORTED);
        test_run(&t, 120);
        for (unsigned i = 1; i <= 4; i++) {
                ck_assert_int_eq(test_worker(&t, i)->state, WORKER_ACTIVE);
                ck_assert_uint_eq(test_worker(&t, i)->generation, 1);
        }
        ck_assert_uint_eq(test_counts(&t).live, 4);
        command_abort(t.fleet, NULL, t.now);
        ck_assert_uint_eq(test_events(&t, EVENT_ROLLOUT_ABORTED), 1);
}

static const struct {
        enum rollout_state state;
        enum reason reason, expected;
} kept[] = {
        {ROLLOUT_DONE, REASON_RESTART, REASON_RESTART},  {ROLLOUT_HALTED, REASON_RESTART, REASON_SCALE},
        {ROLLOUT_ABORTED, REASON_RESTART, REASON_SCALE}, {ROLLOUT_HALTED, REASON_MEMORY, REASON_MEMORY},
        {ROLLOUT_HALTED, REASON_NONE, REASON_SCALE},
};

/* A worker that has refused to be quiet accepts jobs again, and keeps the reason for which it was to leave. A
 * halted restart is none. */
TEST_LOOP(a_worker_that_refused_to_be_quiet_is_not_replaced_after_a_halt, ELEMENTSOF(kept))
{
        test_settle(&t);
        t.fleet->rollout.state = kept[_i].state;
        for (unsigned i = 1; i <= 4; i++)
                test_worker(&t, i)->reason = kept[_i].reason;
        t.fleet_settings.active_process_count = 3;
        test_plan(&t);
        ck_assert_uint_eq(t.pass.plan.n_actions, 1);
        ck_assert_int_eq(t.pass.plan.actions[0].kind, ACTION_QUIET);
        ck_assert_int_eq(t.pass.plan.actions[0].reason, kept[_i].expected);
}

TEST(halts_without_progress_for_rollout_timeout)
{
        test_settle(&t);
        t.newborn.boot_usec = USEC_INFINITY;
        t.fleet_settings.boot_timeout = USEC_PER_HOUR;
        test_restart_to(&t, 599, ROLLOUT_RUNNING);
        test_after(&t, 2, test_rollout(&t), ROLLOUT_HALTED);
        ck_assert_uint_eq(t.fleet->rollout.failures, 0);
        ck_assert_int_eq(test_worker(&t, 5)->state, WORKER_STARTING);
        ck_assert_uint_eq(test_counts(&t).ready, 4);
}

TEST(a_timeout_says_that_new_workers_heartbeat_elsewhere)
{
        test_settle(&t);
        t.newborn.silent = true;
        t.newborn.sent_usec = 1;
        test_restart_to(&t, 602, ROLLOUT_HALTED);
        ck_assert_uint_eq(t.fleet->rollout.failures, 0);
        ck_assert(test_worker(&t, 5)->process.booted);
}

TEST(drains_that_hold_the_places_stop_its_clock)
{
        test_settle(&t);
        t.fleet_settings.max_processes = 5;
        for (unsigned i = 1; i <= 4; i++)
                test_process(test_worker(&t, i))->busy = 1;
        test_run(&t, 6);
        test_restart_to(&t, 3600, ROLLOUT_RUNNING);
        ck_assert_uint_eq(test_counts(&t).quiet, 1);
        for (unsigned i = 1; i <= 4; i++)
                test_process(test_worker(&t, i))->busy = 0;
        test_after(&t, 300, test_rollout(&t), ROLLOUT_DONE);
}

TEST(redis_away_stops_its_clock)
{
        test_settle(&t);
        test_restart(&t);
        test_run(&t, 5);
        test_redis(&t, false);
        test_after(&t, 3600, test_rollout(&t), ROLLOUT_RUNNING);
        ck_assert_uint_eq(t.quiets, 0);
        test_redis(&t, true);
        test_after(&t, 120, test_rollout(&t), ROLLOUT_DONE);
}

TEST(a_shutdown_does_not_report_it_done)
{
        test_settle(&t);
        test_restart(&t);
        test_run(&t, 3);
        command_shutdown(t.world, t.now);
        test_after(&t, 40, test_counts(&t).live, 0);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_RUNNING);
        ck_assert_uint_eq(test_events(&t, EVENT_ROLLOUT_DONE), 0);
}

TEST_MAIN("rollout", .each = {setup, teardown})
