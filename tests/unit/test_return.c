/* SPDX-License-Identifier: MIT */
/* The return to the previous release: by an order, or because the new one was judged worse. */
/* promises: P2 P6 P7 */
#include "decide/command.h"
#include "model/fleets.h"
#include "model/preload.h"
#include "model/rollout.h"
#include "model/world.h"
#include "observe/observe.h"
#include "world.h"

#define MB (UINT64_C(1) << 20)

TEST_WORLD(4)
{
        t.fleet_settings.ready_after = 0;
}

static void settle(bool preload)
{
        if (preload)
                test_preload(&t);
        test_settle(&t);
}

/* A reload changes the launch settings. The test must set t.fleet->settings back at its end. */
static void reload_changed(void)
{
        static struct fleet_settings changed, *list[] = {&changed};
        static struct settings settings;

        changed = t.fleet_settings;
        changed.launch_hash++;
        settings = t.settings;
        settings.fleets = list;
        ck_assert_int_eq(world_reload(t.world, &settings, NULL, t.now), 0);
}

/* A restart that is complete, with the old template kept. */
static void complete(void)
{
        settle(true);
        ck_assert_int_eq(test_restart_out(&t), ROLLOUT_DONE);
        test_run(&t, 2);
        ck_assert_int_eq(test_templates(&t), 2);
}

/* A restart that may replace two of four workers, and has. */
static void limited(bool preload)
{
        settle(preload);
        t.fleet->rollout.limit = 0;
        command_restart(t.fleet, NULL, t.now);
        t.fleet->rollout.limit = 2;
        test_run(&t, 60);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_RUNNING);
        ck_assert_uint_eq(test_of_generation(&t, 2), 2);
        ck_assert_uint_eq(test_of_generation(&t, 1), 2);
}

/* Returns an active worker of the generation. */
static struct worker *active_of(uint64_t generation)
{
        FLEET_FOREACH_WORKER(t.fleet, worker)
                if (worker->generation == generation && worker->state == WORKER_ACTIVE)
                        return worker;
        ck_abort_msg("there is none");
}

TEST(the_old_template_is_kept_after_a_restart_for_ten_minutes)
{
        complete();
        test_after(&t, 9 * 60, test_templates(&t), 2);
        test_after(&t, 2 * 60, test_templates(&t), 1);
        ck_assert_int_eq(test_template(&t, 2)->state, TEMPLATE_READY);
        ck_assert_int_eq(command_rollback(t.fleet, NULL, t.now), COMMAND_NOT_IN_MEMORY);
        ck_assert_uint_eq(t.fleet->generation, 2);
}

TEST(a_template_is_not_kept_where_memory_is_short)
{
        complete();
        FLEET_FOREACH_WORKER(t.fleet, worker)
                observe_memory(worker, 400 * MB, t.now);
        t.world->available_bytes = 100 * MB;
        test_after(&t, 2, test_templates(&t), 1);
}

TEST(the_next_restart_keeps_the_template_before_it_alone)
{
        complete();
        test_restart(&t);
        for (unsigned i = 0; i < 600 && test_rollout(&t) == ROLLOUT_RUNNING; i++) {
                ck_assert_int_le(test_templates(&t), 2);
                test_tick(&t, 1);
        }
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_DONE);
        test_run(&t, 2);
        ck_assert_ptr_null(test_template(&t, 1));
        ck_assert_int_eq(test_template(&t, 2)->state, TEMPLATE_READY);
        ck_assert_uint_eq(t.fleet->rollout.before, 2);
}

TEST(a_rollback_forks_all_workers_from_it)
{
        complete();
        unsigned loads = t.loads;
        ck_assert_int_eq(command_rollback(t.fleet, NULL, t.now), COMMAND_DONE);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_ABORTED);
        ck_assert_uint_eq(generation_shown(t.fleet), 1);
        for (unsigned i = 0; i < 60; i++) {
                ck_assert_uint_ge(test_counts(&t).active, 4);
                test_tick(&t, 1);
        }
        ck_assert_uint_eq(test_of_generation(&t, 1), 4);
        ck_assert_uint_eq(test_of_generation(&t, 2), 0);
        ck_assert_uint_eq(t.loads, loads);
        ck_assert_ptr_null(test_template(&t, 2));
        ck_assert_int_eq(command_rollback(t.fleet, NULL, t.now), COMMAND_NOTHING);
        /* A crashed worker comes from the same template, however late. */
        test_run(&t, 3600);
        unsigned forked = 0;
        test_exit(&t, test_worker(&t, t.fleet->workers[0]->index), 1);
        test_run(&t, 60);
        for (size_t i = 0; i < t.fleet->n_workers; i++)
                forked += t.fleet->workers[i]->process.forked && t.fleet->workers[i]->generation == 1;
        ck_assert_uint_eq(forked, 4);
        ck_assert_uint_eq(t.loads, loads);
        /* Until the next restart. */
        ck_assert_int_eq(test_restart_out(&t), ROLLOUT_DONE);
        ck_assert_uint_eq(test_of_generation(&t, 3), 4);
        ck_assert(!t.fleet->rollout.returned);
        ck_assert_uint_eq(t.fleet->rollout.before, 1);
}

TEST(a_running_restart_is_aborted_by_a_rollback)
{
        limited(true);
        ck_assert_int_eq(command_rollback(t.fleet, NULL, t.now), COMMAND_DONE);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_ABORTED);
        test_after(&t, 30, test_of_generation(&t, 1), 4);
        ck_assert_uint_eq(test_of_generation(&t, 2), 0);
}

TEST(without_a_template_nothing_is_rolled_back)
{
        ck_assert_int_eq(command_rollback(t.fleet, NULL, t.now), COMMAND_NOTHING);
        settle(false);
        ck_assert_int_eq(test_restart_out(&t), ROLLOUT_DONE);
        ck_assert_int_eq(command_rollback(t.fleet, NULL, t.now), COMMAND_NOT_IN_MEMORY);
        test_after(&t, 5, test_of_generation(&t, 2), 4);
}

TEST(a_limit_holds_a_restart_however_long)
{
        limited(false);
        unsigned starts = t.starts;
        /* rollout_timeout does not count. */
        test_after(&t, 3600, t.starts, starts);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_RUNNING);
        ck_assert_uint_eq(test_of_generation(&t, 1), 2);
        t.fleet->rollout.limit = 0;
        ck_assert_int_eq(test_run_out(&t, 600), ROLLOUT_DONE);
        ck_assert_uint_eq(test_of_generation(&t, 2), 4);
}

TEST(an_old_worker_that_dies_meanwhile_is_forked_from_the_old_template)
{
        limited(true);
        test_exit(&t, active_of(1), 1);
        test_run(&t, 60);
        ck_assert_uint_eq(test_of_generation(&t, 1), 2);
        ck_assert_uint_eq(test_of_generation(&t, 2), 2);
}

TEST(a_rejected_release_leaves_and_the_old_workers_are_completed_by_forks)
{
        limited(true);
        ck_assert_int_ne(t.fleet->waits_for, WAIT_NONE);
        rollout_reject(t.fleet, "12 of 100 jobs failed", NULL, t.now);
        usec_t halted_at = t.now;
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_HALTED);
        /* The wait of the restart and its number of workers end with it. */
        ck_assert_int_eq(t.fleet->waits_for, WAIT_NONE);
        ck_assert_uint_eq(t.fleet->rollout.total, 2);
        ck_assert_str_eq(t.fleet->rollout.error, "12 of 100 jobs failed");
        test_after(&t, 60, test_of_generation(&t, 1), 4);
        ck_assert_uint_eq(test_of_generation(&t, 2), 0);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_HALTED);
        ck_assert_uint_eq(t.fleet->rollout.progress_at, halted_at);
}

TEST(without_a_template_a_rejected_release_is_not_started_again)
{
        limited(false);
        rollout_reject(t.fleet, "12 of 100 jobs failed", NULL, t.now);
        unsigned starts = t.starts;
        test_after(&t, 60, test_of_generation(&t, 2), 0);
        ck_assert_uint_eq(test_of_generation(&t, 1), 2);
        test_after(&t, 3600, t.starts, starts);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_RETURNED);
        /* The command runs what is linked now. Nothing else is left to run jobs. */
        for (size_t i = 0; i < t.fleet->n_workers; i++)
                if (t.fleet->workers[i]->state == WORKER_ACTIVE)
                        test_exit(&t, t.fleet->workers[i], 1);
        test_run(&t, 120);
        ck_assert_uint_eq(test_counts(&t).active, 4);
        ck_assert(!t.fleet->rollout.returned);
        ck_assert_uint_eq(t.fleet->generation, 2);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_HALTED);
        ck_assert_pstr_eq(strstr(t.fleet->rollout.error, "; "),
                          "; the rollback to generation 1 ended: neither its template nor a worker of it is "
                          "left, so the command starts workers again, whichever release it leads to");
        ck_assert_str_eq(
                test_event_text(&t, EVENT_ROLLOUT_ABORTED),
                "fleet 'default': the rollback to generation 1 ended (reason: neither its template "
                "nor a worker of it is left, so the command starts workers again, whichever release "
                "it leads to). Link the release that is to run, then run 'sqmgrctl restart default'");
}

/* A reload changed the launch settings, and one worker has been started from them since. */
TEST(a_rejected_release_leaves_the_workers_that_a_reload_had_outdated)
{
        settle(false);
        reload_changed();
        test_exit(&t, test_worker(&t, 1), 1);
        test_run(&t, 30);
        ck_assert_uint_eq(test_of_generation(&t, 1), 3);
        ck_assert_uint_eq(test_of_generation(&t, 2), 1);
        command_restart(t.fleet, NULL, t.now);
        t.fleet->rollout.limit = 1;
        test_run(&t, 60);
        ck_assert_uint_eq(test_of_generation(&t, 3), 1);
        rollout_reject(t.fleet, "12 of 100 jobs failed", NULL, t.now);
        test_run(&t, 60);
        ck_assert_uint_eq(test_of_generation(&t, 3), 0);
        ck_assert_uint_eq(test_of_generation(&t, 1) + test_of_generation(&t, 2), 3);
        ck_assert_uint_eq(t.fleet->generation, 2);
        t.fleet->settings = &t.fleet_settings;
}

/* The same, before any worker was started from the new settings. */
TEST(a_generation_that_no_worker_has_is_not_returned_to)
{
        settle(false);
        reload_changed();
        command_restart(t.fleet, NULL, t.now);
        ck_assert_uint_eq(t.fleet->rollout.before, 1);
        t.fleet->rollout.limit = 1;
        test_run(&t, 60);
        rollout_reject(t.fleet, "12 of 100 jobs failed", NULL, t.now);
        test_run(&t, 60);
        ck_assert_uint_eq(test_of_generation(&t, 1), 3);
        ck_assert_uint_eq(test_of_generation(&t, 3), 0);
        t.fleet->settings = &t.fleet_settings;
}

TEST(new_launch_settings_end_the_return)
{
        complete();
        (void)command_rollback(t.fleet, NULL, t.now);
        ck_assert_uint_eq(test_of_generation(&t, 2), 4);
        reload_changed();
        ck_assert(!t.fleet->rollout.returned);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_HALTED);
        ck_assert_str_eq(
                t.fleet->rollout.error,
                "rolled back to generation 1 by the operator; the rollback to generation 1 ended: the "
                "settings that workers are started with have changed");
        ck_assert_str_eq(test_event_text(&t, EVENT_ROLLOUT_ABORTED),
                         "fleet 'default': the rollback to generation 1 ended; 4 workers of the release that "
                         "was left keep running (reason: the settings that workers are started with have "
                         "changed). Link the release that is to run, then run 'sqmgrctl restart default'");
        ck_assert_uint_eq(t.fleet->generation, 3);
        ck_assert_int_eq(command_rollback(t.fleet, NULL, t.now), COMMAND_NOTHING);
        t.fleet->settings = &t.fleet_settings;
}

/* Without surge, and with no place for a replacement, a worker leaves before another takes its place. */
TEST(a_rollback_needs_no_place_for_another_process_without_surge)
{
        t.fleet_settings.restart_surge = (struct share){.value = 0};
        t.fleet_settings.max_processes = 4;
        complete();
        ck_assert_int_eq(command_rollback(t.fleet, NULL, t.now), COMMAND_DONE);
        test_run(&t, 300);
        ck_assert_uint_eq(test_of_generation(&t, 1), 4);
        ck_assert_uint_eq(test_of_generation(&t, 2), 0);
}

/* The fleet had fewer workers than its count when the restart began: none of the old ones is to be replaced.
 */
TEST(a_limit_holds_a_restart_of_a_fleet_that_lacked_workers)
{
        settle(false);
        t.fleet_settings.active_process_count = 8;
        command_restart(t.fleet, NULL, t.now);
        t.fleet->rollout.limit = 2;
        test_run(&t, 60);
        ck_assert_uint_eq(test_of_generation(&t, 1), 4);
        test_run(&t, 3600);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_RUNNING);
}

/* The workers of a release that did not end well are the first to leave. */
TEST(a_limited_restart_keeps_the_workers_of_the_release_before)
{
        limited(true);
        command_restart(t.fleet, NULL, t.now);
        ck_assert_uint_eq(t.fleet->rollout.before, 1);
        t.fleet->rollout.limit = 2;
        test_run(&t, 60);
        ck_assert_uint_eq(test_of_generation(&t, 3), 2);
        ck_assert_uint_eq(test_of_generation(&t, 1), 2);
        ck_assert_uint_eq(test_of_generation(&t, 2), 0);
}

TEST(a_generation_without_workers_is_not_gone_back_to)
{
        limited(false);
        for (size_t i = 0; i < t.fleet->n_workers; i++)
                if (t.fleet->workers[i]->generation == 1 && t.fleet->workers[i]->state == WORKER_ACTIVE)
                        test_exit(&t, t.fleet->workers[i], 1);
        command_abort(t.fleet, NULL, t.now);
        test_run(&t, 60);
        ck_assert_uint_eq(test_of_generation(&t, 2), 4);
        command_restart(t.fleet, NULL, t.now);
        ck_assert_uint_eq(t.fleet->rollout.before, 2);
}

TEST(an_old_worker_over_its_threshold_is_replaced_while_a_restart_is_limited)
{
        limited(true);
        struct worker *old = active_of(1);
        t.fleet_settings.memory_threshold = 500 << 20;
        test_process(old)->memory_bytes = (uint64_t)600 << 20;
        unsigned starts = t.starts;
        test_run(&t, 300);
        ck_assert_uint_eq(t.starts, starts + 1);
        ck_assert_uint_eq(t.kills, 0);
        ck_assert_uint_eq(test_of_generation(&t, 1), 2);
        ck_assert_uint_eq(test_of_generation(&t, 2), 2);
        for (size_t i = 0; i < t.fleet->n_workers; i++)
                ck_assert(!t.fleet->workers[i]->memory.over_threshold);
}

/* The replacement of a new worker is a new one, too. */
TEST(a_new_worker_over_its_threshold_is_replaced_by_a_new_one_while_a_restart_is_limited)
{
        limited(true);
        struct worker *new = active_of(2);
        t.fleet_settings.memory_threshold = 500 << 20;
        test_process(new)->memory_bytes = (uint64_t)600 << 20;
        unsigned starts = t.starts;
        test_run(&t, 300);
        ck_assert_uint_eq(t.starts, starts + 1);
        ck_assert_uint_eq(test_of_generation(&t, 1), 2);
        ck_assert_uint_eq(test_of_generation(&t, 2), 2);
}

/* A new worker hung, so another one was started. Once it sends heartbeats again, one worker is too many. */
TEST(a_limited_restart_has_no_old_worker_leave_for_a_new_one_too_many)
{
        t.fleet_settings.hang_after = 30 * USEC_PER_SEC;
        limited(false);
        struct worker *new = active_of(2);
        test_process(new)->silent = true;
        test_run(&t, 120);
        ck_assert_uint_eq(test_of_generation(&t, 2), 3);
        test_process(new)->silent = false;
        test_run(&t, 120);
        ck_assert_uint_eq(test_of_generation(&t, 1), 2);
        ck_assert_uint_eq(test_of_generation(&t, 2), 2);
}

/* The template died after one fork: nothing replaces the other workers. */
TEST(a_rollback_ends_with_its_template_and_the_fleet_loses_no_worker)
{
        complete();
        ck_assert_int_eq(command_rollback(t.fleet, NULL, t.now), COMMAND_DONE);
        for (unsigned i = 0; i < 10 && test_of_generation(&t, 1) == 0; i++)
                test_tick(&t, 1);
        ck_assert_uint_eq(test_of_generation(&t, 1), 1);
        test_template_exit(&t, test_template(&t, 1));
        for (unsigned i = 0; i < 600; i++) {
                test_tick(&t, 1);
                ck_assert_uint_ge(test_counts(&t).active, 4);
        }
        ck_assert(!t.fleet->rollout.returned);
        ck_assert_uint_eq(t.fleet->generation, 2);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_HALTED);
        ck_assert_ptr_nonnull(
                strstr(test_event_text(&t, EVENT_ROLLOUT_ABORTED),
                       "4 workers of the release that was left keep running (reason: its template "
                       "ended before all workers were replaced)"));
        /* A worker that dies is replaced. */
        test_exit(&t, test_worker(&t, t.fleet->workers[0]->index), 1);
        test_after(&t, 60, test_counts(&t).active, 4);
        command_abort(t.fleet, NULL, t.now);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_ABORTED);
        ck_assert_int_eq(test_restart_out(&t), ROLLOUT_DONE);
        ck_assert_uint_eq(test_of_generation(&t, 3), 4);
}

/* The workers had refused to be quiet. */
TEST(a_worker_that_leaves_after_a_rollback_has_ended_does_not_leave_for_it)
{
        complete();
        ck_assert_int_eq(command_rollback(t.fleet, NULL, t.now), COMMAND_DONE);
        test_template_exit(&t, test_template(&t, 1));
        test_tick(&t, 1);
        ck_assert(!t.fleet->rollout.returned);
        for (size_t i = 0; i < t.fleet->n_workers; i++)
                t.fleet->workers[i]->reason = REASON_ROLLBACK;
        t.fleet_settings.active_process_count = 3;
        test_plan(&t);
        for (size_t i = 0; i < t.fleet->n_workers; i++)
                ck_assert_int_ne(t.fleet->workers[i]->verdict.retire_reason, REASON_ROLLBACK);
}

/* All workers are forked, and not ready yet: the rollback needs its template no more. */
TEST(a_rollback_whose_workers_are_all_forked_goes_on_without_its_template)
{
        t.fleet_settings.ready_after = 30 * USEC_PER_SEC;
        complete();
        test_run(&t, 60);
        ck_assert_int_eq(command_rollback(t.fleet, NULL, t.now), COMMAND_DONE);
        for (unsigned i = 0; i < 60 && test_of_generation(&t, 1) < 4; i++)
                test_tick(&t, 1);
        test_template_exit(&t, test_template(&t, 1));
        test_tick(&t, 1);
        ck_assert_uint_eq(test_of_generation(&t, 2), 4);
        test_after(&t, 120, test_of_generation(&t, 2), 0);
        ck_assert(t.fleet->rollout.returned);
        ck_assert_uint_eq(test_of_generation(&t, 1), 4);
}

/* The workers of the release that was left are replaced: later deaths of the template end nothing. */
TEST(a_complete_rollback_outlives_its_template)
{
        complete();
        ck_assert_int_eq(command_rollback(t.fleet, NULL, t.now), COMMAND_DONE);
        test_after(&t, 60, test_of_generation(&t, 1), 4);
        test_template_exit(&t, test_template(&t, 1));
        test_run(&t, 60);
        ck_assert(t.fleet->rollout.returned);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_ABORTED);
        ck_assert_uint_eq(test_of_generation(&t, 1), 4);
}

/* The template died, and what was forked from it has not booted. */
TEST(no_worker_leaves_for_one_that_has_not_booted)
{
        complete();
        t.newborn.boot_usec = USEC_INFINITY;
        ck_assert_int_eq(command_rollback(t.fleet, NULL, t.now), COMMAND_DONE);
        for (unsigned i = 0; i < 10 && test_of_generation(&t, 1) == 0; i++)
                test_tick(&t, 1);
        ck_assert_uint_eq(test_of_generation(&t, 1), 1);
        test_template_exit(&t, test_template(&t, 1));
        test_run(&t, 20);
        ck_assert_uint_ge(test_counts(&t).active, 4);
}

/* sqmgr crashed, and the template of the earlier one has not noticed yet. */
TEST(a_template_out_of_reach_is_not_returned_to)
{
        complete();
        test_template(&t, 1)->lost = true;
        ck_assert_int_eq(command_rollback(t.fleet, NULL, t.now), COMMAND_NOT_IN_MEMORY);
        ck_assert_uint_eq(t.fleet->generation, 2);
}

/* sqmgr crashed before it could save the state of a restart that the ledger shows. */
TEST(a_start_of_a_later_generation_ends_the_return)
{
        complete();
        (void)command_rollback(t.fleet, NULL, t.now);
        test_run(&t, 60);
        generation_observe(t.fleet, 2);
        ck_assert(t.fleet->rollout.returned);
        generation_observe(t.fleet, 3);
        ck_assert(!t.fleet->rollout.returned);
        test_exit(&t, test_worker(&t, t.fleet->workers[0]->index), 1);
        test_run(&t, 60);
        ck_assert_uint_eq(test_counts(&t).active, 4);
}

/* Nobody observed whether the release of a later generation is good: the workers before it stay until the
 * next restart. */
TEST(a_start_of_a_later_generation_replaces_nobody)
{
        complete();
        generation_observe(t.fleet, 3);
        test_after(&t, 300, test_of_generation(&t, 2), 4);
        ck_assert_int_eq(test_restart_out(&t), ROLLOUT_DONE);
        ck_assert_uint_eq(test_of_generation(&t, 2), 0);
}

TEST_MAIN("return", .each = {setup, teardown})
