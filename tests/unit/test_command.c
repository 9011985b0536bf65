/* SPDX-License-Identifier: MIT */
/* The operator's commands, reloads, and the end of sqmgr itself. */
/* promises: P1 P8 */
#include "decide/command.h"
#include "model/fleets.h"
#include "model/rollout.h"
#include "model/world.h"
#include "observe/observe.h"
#include "quoting.h"
#include "world.h"

TEST_WORLD(2)
{
        test_settle(&t);
}

TEST(a_quieted_fleet_drains_and_is_not_refilled_until_start)
{
        command_quiet_fleet(t.fleet, NULL, t.now);
        test_after(&t, 1, t.quiets, 2);
        test_after(&t, 60, test_counts(&t).live, 0);
        ck_assert_uint_eq(t.starts, 2);
        ck_assert_str_eq(fleet_order_name(t.fleet->order), "quiet");
        command_start(t.fleet, NULL, t.now);
        test_after(&t, 1, t.starts, 4);
}

TEST_LOOP(restart_leaves_a_quieted_or_stopped_fleet_so, 2)
{
        if (_i == 0)
                command_quiet_fleet(t.fleet, NULL, t.now);
        else
                command_stop(t.fleet, false, NULL, t.now);
        test_after(&t, 60, test_counts(&t).live, 0);
        ck_assert_int_eq(command_restart(t.fleet, NULL, t.now), _i == 0 ? COMMAND_QUIETED : COMMAND_STOPPED);
        test_after(&t, 60, test_counts(&t).live, 0);
        ck_assert_uint_eq(t.fleet->generation, 1);
        ck_assert_str_eq(fleet_order_name(t.fleet->order), _i == 0 ? "quiet" : "stopped");
}

TEST(start_and_restart_resume_a_quieted_fleet)
{
        command_quiet_fleet(t.fleet, NULL, t.now);
        test_run(&t, 60);
        command_start(t.fleet, NULL, t.now);
        ck_assert_int_eq(command_restart(t.fleet, NULL, t.now), COMMAND_DONE);
        test_after(&t, 20, test_counts(&t).ready, 2);
        ck_assert_int_eq(t.fleet->rollout.state, ROLLOUT_DONE);
        ck_assert_uint_eq(t.fleet->workers[0]->generation, 2);
}

/* The last event, and whether it names the operator. */
static void expect_reported(enum event_kind kind, const struct orderer *by)
{
        ck_assert_uint_gt(t.world->n_events, 0);
        const struct event *last = &t.world->events[t.world->n_events - 1];

        ck_assert_int_eq(last->kind, kind);
        ck_assert(last->by.known == !!by);
        if (by)
                ck_assert_uint_eq(last->by.uid, by->uid);
}

TEST(each_order_says_by_whom)
{
        static const struct orderer deploy = {.known = true, .uid = 1001, .name = "deploy"},
                                    unnamed = {.known = true, .uid = 70000};

        command_restart(t.fleet, &deploy, t.now);
        expect_reported(EVENT_ROLLOUT_STARTED, &deploy);
        ck_assert_uint_eq(t.fleet->rollout.total, 2);
        command_abort(t.fleet, &deploy, t.now);
        expect_reported(EVENT_ROLLOUT_ABORTED, &deploy);
        command_scale(t.fleet, 3, &deploy, t.now);
        expect_reported(EVENT_ORDER, &deploy);
        command_quiet_worker(test_worker(&t, 1), &deploy, t.now);
        expect_reported(EVENT_ORDER, &deploy);
        ck_assert_uint_eq(test_event(&t, EVENT_ORDER)->index, 1);
        command_quiet_fleet(t.fleet, &deploy, t.now);
        expect_reported(EVENT_ORDER, &deploy);
        ck_assert_uint_eq(test_event(&t, EVENT_ORDER)->index, 0);
        command_stop(t.fleet, false, &unnamed, t.now);
        expect_reported(EVENT_ORDER, &unnamed);
        command_stop(t.fleet, true, &unnamed, t.now);
        expect_reported(EVENT_ORDER, &unnamed);
        command_start(t.fleet, NULL, t.now);
        expect_reported(EVENT_ORDER, NULL);
        ck_assert_uint_eq(test_events(&t, EVENT_ORDER), 6);
}

TEST(stop_waits_for_jobs_and_force_does_not)
{
        test_process(test_worker(&t, 1))->busy = 1;
        test_run(&t, 6);
        command_stop(t.fleet, false, NULL, t.now);
        test_after(&t, 600, t.stops, 1);
        command_stop(t.fleet, true, NULL, t.now);
        test_after(&t, 1, t.stops, 2);
}

TEST(force_ends_the_booting_and_the_unseen_too)
{
        test_redis(&t, false);
        test_spawn(&t);
        command_stop(t.fleet, true, NULL, t.now);
        test_after(&t, 1, t.stops, 3);
        test_after(&t, 1, test_counts(&t).live, 0);
}

TEST(start_takes_force_back)
{
        command_stop(t.fleet, true, NULL, t.now);
        command_start(t.fleet, NULL, t.now);
        test_after(&t, 10, t.stops, 0);
        ck_assert_uint_eq(test_counts(&t).active, 2);
}

TEST(a_stopped_fleet_stays_so_through_a_deployment)
{
        ck_assert_int_eq(command_quiet_fleet(t.fleet, NULL, t.now), COMMAND_DONE);
        command_stop(t.fleet, true, NULL, t.now);
        ck_assert_int_eq(command_quiet_fleet(t.fleet, NULL, t.now), COMMAND_LEAVING);
        ck_assert(t.fleet->force);
        ck_assert_int_eq(command_restart(t.fleet, NULL, t.now), COMMAND_STOPPED);
        command_start(t.fleet, NULL, t.now);
        ck_assert_int_eq(command_quiet_fleet(t.fleet, NULL, t.now), COMMAND_DONE);
}

TEST(quiet_and_stop_abort_a_rollout)
{
        command_restart(t.fleet, NULL, t.now);
        command_quiet_fleet(t.fleet, NULL, t.now);
        ck_assert_int_eq(t.fleet->rollout.state, ROLLOUT_ABORTED);
        ck_assert_str_ne(t.fleet->rollout.error, "");
        command_start(t.fleet, NULL, t.now);
        command_restart(t.fleet, NULL, t.now);
        command_stop(t.fleet, false, NULL, t.now);
        ck_assert_int_eq(t.fleet->rollout.state, ROLLOUT_ABORTED);
}

TEST(abort_and_stop_acknowledge_a_restart_that_has_halted)
{
        for (unsigned i = 0; i < 2; i++) {
                command_start(t.fleet, NULL, t.now);
                t.fleet->rollout =
                        (struct rollout){.state = ROLLOUT_HALTED, .lines_token = 5, .error = "it failed"};
                t.fleet->crash.count = 3;
                command_quiet_fleet(t.fleet, NULL, t.now);
                ck_assert_int_eq(t.fleet->rollout.state, ROLLOUT_HALTED);
                if (i == 0)
                        command_abort(t.fleet, NULL, t.now);
                else
                        command_stop(t.fleet, false, NULL, t.now);
                ck_assert_int_eq(t.fleet->rollout.state, ROLLOUT_ABORTED);
                ck_assert_str_ne(t.fleet->rollout.error, "it failed");
                ck_assert_uint_eq(t.fleet->crash.count, 0);
                /* They are of what is over. */
                observe_log_tail(t.fleet, 5, QUOTED("boom"));
                ck_assert(quoted_is_empty(&t.fleet->rollout.quoted));
        }
}

TEST(a_quieted_worker_is_refilled)
{
        ck_assert_int_eq(command_quiet_worker(test_worker(&t, 2), NULL, t.now), COMMAND_DONE);
        test_after(&t, 2, test_worker(&t, 2)->state, WORKER_QUIET);
        ck_assert_int_eq(test_worker(&t, 2)->reason, REASON_OPERATOR);
        ck_assert_uint_eq(t.starts, 3);
        ck_assert_int_eq(command_quiet_worker(test_worker(&t, 2), NULL, t.now), COMMAND_LEAVING);
}

TEST(scale_takes_1_to_max_processes)
{
        t.fleet_settings.max_processes = 5;
        ck_assert_int_eq(command_scale(t.fleet, 0, NULL, t.now), COMMAND_RANGE);
        ck_assert_int_eq(command_scale(t.fleet, 6, NULL, t.now), COMMAND_RANGE);
        ck_assert_uint_eq(fleet_current_count(t.fleet), 2);
        ck_assert_int_eq(command_scale(t.fleet, 5, NULL, t.now), COMMAND_DONE);
        test_tick(&t, 1);
        test_settle(&t);
        ck_assert_uint_eq(test_counts(&t).ready, 5);
        ck_assert_int_eq(command_scale(t.fleet, 1, NULL, t.now), COMMAND_DONE);
        test_after(&t, 60, test_counts(&t).live, 1);
}

TEST(max_processes_is_three_times_the_configured_count_whatever_is_in_force)
{
        ck_assert_uint_eq(fleet_max_processes(t.fleet), 6);
        ck_assert_int_eq(command_scale(t.fleet, 7, NULL, t.now), COMMAND_RANGE);
        ck_assert_int_eq(command_scale(t.fleet, 4, NULL, t.now), COMMAND_DONE);
        ck_assert_uint_eq(fleet_max_processes(t.fleet), 6);
        ck_assert_int_eq(command_scale(t.fleet, 7, NULL, t.now), COMMAND_RANGE);
        /* Given before a reload that has lowered the maximum. */
        t.fleet->scale = 9;
        ck_assert_uint_eq(fleet_current_count(t.fleet), 6);
}

TEST(that_another_count_is_in_force_is_reported_with_who_asked_for_it)
{
        struct orderer deploy = {.known = true, .uid = 1001, .name = "deploy"};

        ck_assert(!fleet_is_scaled(t.fleet));
        command_scale(t.fleet, 3, &deploy, t.now);
        ck_assert(fleet_is_scaled(t.fleet));
        ck_assert_uint_eq(t.fleet->scale_at, t.now);
        ck_assert_uint_eq(t.fleet->scale_by.uid, 1001);
        command_scale(t.fleet, 2, NULL, t.now);
        ck_assert(!fleet_is_scaled(t.fleet));
}

/* Another count in the file, read by a reload. */
static void configure_count(unsigned count)
{
        t.fleet_settings.active_process_count = count;
        t.fleet->scale = 0;
}

TEST(a_count_of_0_switches_a_fleet_off)
{
        test_settle(&t);
        test_process(test_worker(&t, 1))->busy = 1;
        configure_count(0);
        test_after(&t, 60, test_counts(&t).live, 1);
        ck_assert_int_eq(test_worker(&t, 1)->state, WORKER_QUIET);
        ck_assert_int_eq(test_worker(&t, 1)->reason, REASON_SCALE);
        test_process(test_worker(&t, 1))->busy = 0;
        test_after(&t, 60, test_counts(&t).live, 0);
        ck_assert_uint_eq(t.starts, 2);
        ck_assert_uint_eq(t.kills, 0);
        ck_assert_int_eq(fleet_order(t.fleet), ORDER_RUN);
        ck_assert_uint_ge(fleet_max_processes(t.fleet), 1);
}

TEST(a_restart_of_a_fleet_that_is_off_is_done_at_once)
{
        test_settle(&t);
        test_process(test_worker(&t, 1))->busy = 1;
        configure_count(0);
        test_restart_to(&t, 30, ROLLOUT_DONE);
        ck_assert_uint_eq(t.starts, 2);
        test_process(test_worker(&t, 1))->busy = 0;
        test_after(&t, 60, test_counts(&t).live, 0);
        test_restart_to(&t, 1, ROLLOUT_DONE);
        ck_assert_uint_eq(t.starts, 2);
}

TEST(a_fleet_that_is_off_is_scaled_up_and_back)
{
        configure_count(0);
        test_after(&t, 90, test_counts(&t).live, 0);
        unsigned before = t.starts;
        ck_assert_int_eq(command_scale(t.fleet, 2, NULL, t.now), COMMAND_DONE);
        test_tick(&t, 1);
        test_settle(&t);
        ck_assert_uint_eq(test_counts(&t).ready, 2);
        test_restart_to(&t, 90, ROLLOUT_DONE);
        ck_assert_uint_eq(t.starts, before + 4);
        ck_assert_int_eq(command_scale(t.fleet, 0, NULL, t.now), COMMAND_DONE);
        test_after(&t, 60, test_counts(&t).live, 0);
}

TEST(force_kills_without_redis_too)
{
        test_settle(&t);
        t.newborn.deaf = true;
        test_process(test_worker(&t, 1))->deaf = true;
        test_redis(&t, false);
        ck_assert_int_eq(command_stop(t.fleet, true, NULL, t.now), COMMAND_DONE);
        test_after(&t, 59, t.kills, 0);
        test_after(&t, 3, t.kills, 1);
        ck_assert_uint_eq(test_counts(&t).live, 0);
}

TEST(shutdown_drains_and_then_ends_the_rest)
{
        test_process(test_worker(&t, 1))->busy = 1;
        test_run(&t, 6);
        command_shutdown(t.world, t.now);
        test_after(&t, 30, t.quiets, 2);
        ck_assert_uint_eq(t.stops, 1);
        test_after(&t, 29, t.stops, 1);
        test_after(&t, 1, t.stops, 2);
        ck_assert_int_eq(test_worker(&t, 1)->reason, REASON_SHUTDOWN);
        ck_assert_uint_eq(t.starts, 2);
}

TEST(a_second_shutdown_ends_all_now)
{
        test_process(test_worker(&t, 1))->busy = 1;
        test_process(test_worker(&t, 2))->busy = 1;
        test_process(test_worker(&t, 2))->deaf = true;
        command_shutdown(t.world, t.now);
        test_after(&t, 1, t.stops, 0);
        command_shutdown(t.world, t.now);
        test_after(&t, 1, t.stops, 2);
        test_redis(&t, false);
        test_after(&t, 59, t.kills, 0);
        test_after(&t, 1, t.kills, 1);
}

TEST(shutdown_without_redis_quiets_nothing_and_ends_all_at_the_deadline)
{
        test_redis(&t, false);
        command_shutdown(t.world, t.now);
        test_after(&t, 59, t.quiets + t.stops, 0);
        test_after(&t, 1, t.stops, 2);
}

/* The settings as a reload leaves them, with one fleet more. */
static struct fleet_settings changed, second;
static struct fleet_settings *list[2] = {&changed, &second};
static struct settings reloaded;

static void reload(void)
{
        reloaded = t.settings;
        reloaded.fleets = list;
        reloaded.n_fleets = second.name ? 2 : 1;
        ck_assert_int_eq(world_reload(t.world, &reloaded, NULL, t.now), 0);
        ck_assert_ptr_eq(t.world->settings, &reloaded);
        ck_assert_ptr_eq(t.fleet->settings, &changed);
}

static void setup_reload(void)
{
        setup();
        changed = second = *t.fleet->settings;
        second.name = NULL;
}

TEST_FIXTURE(setup_reload, teardown)

TEST(reload_applies_what_ends_nobody_at_once)
{
        changed.active_process_count = 3;
        command_scale(t.fleet, 4, NULL, t.now);
        reload();
        ck_assert_uint_eq(fleet_target(t.fleet), 3);
        ck_assert_uint_eq(t.fleet->generation, 1);
        test_after(&t, 30, test_counts(&t).ready, 3);
        ck_assert_uint_eq(t.quiets, 0);
}

TEST(reload_without_active_process_max_ends_the_automatic_count)
{
        changed.active_process_max = 8;
        t.fleet->automatic_count = 6;
        reload();
        ck_assert_uint_eq(fleet_target(t.fleet), 6);
        changed.active_process_max = 0;
        reload();
        changed.active_process_max = 8;
        reload();
        ck_assert_uint_eq(fleet_target(t.fleet), 2);
}

TEST(reload_marks_workers_outdated_and_leaves_them)
{
        changed.launch_hash++;
        reload();
        ck_assert_uint_eq(test_counts(&t).outdated, 2);
        test_after(&t, 60, t.quiets + t.stops, 0);
        ck_assert_uint_eq(t.starts, 2);
        /* Who takes the place of one that crashed is started as it is configured now. */
        test_exit(&t, test_worker(&t, 1), 1);
        test_after(&t, 60, test_counts(&t).outdated, 1);
        command_restart(t.fleet, NULL, t.now);
        test_after(&t, 120, test_counts(&t).outdated, 0);
        ck_assert_int_eq(t.fleet->rollout.state, ROLLOUT_DONE);
}

/* A reload whose launch settings have this hash. */
static void edit(uint64_t hash)
{
        static struct fleet_settings before;

        before = *t.fleet->settings;
        t.fleet->settings = &before;
        changed.launch_hash = hash;
        reload();
}

/* Compared is what would be started, not how often the file was read. */
TEST(an_edit_that_is_taken_back_outdates_nobody)
{
        uint64_t hash = t.fleet->settings->launch_hash;

        edit(hash + 1);
        ck_assert_uint_eq(generation_outdated_by_reload(t.fleet), 2);
        /* No worker has another generation yet. */
        ck_assert_uint_eq(generation_shown(t.fleet), 1);
        edit(hash);
        ck_assert_uint_eq(test_counts(&t).outdated, 0);
        ck_assert_uint_eq(t.fleet->generation, 1);
        edit(hash + 1);
        test_exit(&t, test_worker(&t, 1), 1);
        test_after(&t, 60, test_counts(&t).outdated, 1);
        uint64_t begun = test_worker(&t, 1)->generation;
        ck_assert_uint_eq(generation_shown(t.fleet), begun);
        /* The worker that was started from the edit is now outdated. */
        edit(hash);
        ck_assert_uint_eq(test_counts(&t).outdated, 1);
        ck_assert(worker_outdated(test_worker(&t, 1)));
        edit(hash + 1);
        ck_assert_uint_eq(t.fleet->generation, begun);
        command_restart(t.fleet, NULL, t.now);
        ck_assert_uint_gt(t.fleet->generation, begun);
        ck_assert_uint_eq(generation_outdated_by_reload(t.fleet), 0);
        test_after(&t, 120, test_counts(&t).outdated, 0);
        ck_assert_int_eq(t.fleet->rollout.state, ROLLOUT_DONE);
        /* Settings of before the restart are older code. Only a restart replaces the workers. */
        edit(hash);
        test_after(&t, 60, generation_outdated_by_reload(t.fleet), 2);
}

/* However often the file is edited, workers of the settings that come back are current. */
TEST(generations_with_workers_are_remembered)
{
        uint64_t hash = t.fleet->settings->launch_hash;

        edit(hash + 1);
        test_exit(&t, test_worker(&t, 1), 1);
        test_run(&t, 60);
        for (unsigned i = 2; i < 20; i++)
                edit(hash + i);
        edit(hash + 1);
        ck_assert(!worker_outdated(test_worker(&t, 1)));
        edit(hash);
        ck_assert(!worker_outdated(test_worker(&t, 2)));
}

TEST(reload_during_a_restart_is_rolled_out_with_it)
{
        command_restart(t.fleet, NULL, t.now);
        test_run(&t, 3);
        changed.launch_hash++;
        reload();
        ck_assert_uint_eq(t.fleet->generation, 3);
        test_after(&t, 180, t.fleet->rollout.state, ROLLOUT_DONE);
        ck_assert_uint_eq(test_worker(&t, t.fleet->workers[0]->index)->generation, 3);
        ck_assert_uint_eq(test_counts(&t).ready, 2);
}

TEST(a_removed_fleet_drains_and_is_forgotten)
{
        struct worker *busy = test_worker(&t, 1);

        command_restart(t.fleet, NULL, t.now);
        test_process(busy)->busy = 1;
        changed.removed = true;
        reload();
        ck_assert_int_eq(t.fleet->rollout.state, ROLLOUT_ABORTED);
        ck_assert_str_eq(fleet_order_name(fleet_order(t.fleet)), "stopped");
        test_after(&t, 60, test_counts(&t).live, 1);
        ck_assert_int_eq(command_restart(t.fleet, NULL, t.now), COMMAND_STOPPED);
        ck_assert_int_eq(command_start(t.fleet, NULL, t.now), COMMAND_REMOVED);
        ck_assert_int_eq(command_scale(t.fleet, 1, NULL, t.now), COMMAND_REMOVED);
        world_forget_removed(t.world);
        ck_assert_uint_eq(t.world->n_fleets, 1);
        test_process(busy)->busy = 0;
        test_after(&t, 60, test_counts(&t).live, 0);
        world_forget_removed(t.world);
        ck_assert_uint_eq(t.world->n_fleets, 0);
}

TEST(a_removed_fleet_can_come_back)
{
        test_process(test_worker(&t, 1))->busy = 1;
        changed.removed = true;
        reload();
        test_after(&t, 10, test_counts(&t).active, 0);
        changed.removed = false;
        /* The same settings, as a second reload hands them in. */
        struct fleet_settings again = changed;
        struct fleet_settings *again_list[] = {&again};
        struct settings settings = reloaded;
        settings.fleets = again_list;
        changed.removed = true;
        ck_assert_int_eq(world_reload(t.world, &settings, NULL, t.now), 0);
        ck_assert_uint_eq(test_events(&t, EVENT_ORDER), 2);
        test_after(&t, 60, test_counts(&t).ready, 2);
        ck_assert_uint_eq(test_counts(&t).live, 3);
}

TEST(an_added_fleet_joins)
{
        char name[] = "second";

        second.name = name;
        reload();
        ck_assert_uint_eq(t.world->n_fleets, 2);
        ck_assert_ptr_eq(t.world->fleets[0], t.fleet);
        const struct fleet *fleet = world_fleet(t.world, "second");
        ck_assert_ptr_eq(fleet, t.world->fleets[1]);
        ck_assert_ptr_eq(fleet->world, t.world);
        ck_assert_uint_eq(fleet->generation, 1);
        ck_assert_uint_eq(fleet_target(fleet), 2);
        reload();
        ck_assert_uint_eq(t.world->n_fleets, 2);
}

TEST_MAIN("command", .each = {setup, teardown})
