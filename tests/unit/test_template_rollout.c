/* SPDX-License-Identifier: MIT */
/* A restart of a fleet that preloads: the new template first, the old one until it is done. */
/* promises: P2 P6 P7 */
#include "decide/command.h"
#include "model/describe.h"
#include "model/fleets.h"
#include "model/preload.h"
#include "model/rollout.h"
#include "observe/observe.h"
#include "observe/observe_template.h"
#include "quoting.h"
#include "world.h"

#define KEEP_SECONDS (unsigned)(TEMPLATE_KEEP_USEC / USEC_PER_SEC)

TEST_WORLD(3)
{
        test_preload(&t);
        test_settle(&t);
}

/* A restart whose template loads, and whose workers die at boot. */
static void halt_by_workers(void)
{
        t.newborn.die_usec = 100 * USEC_PER_MSEC;
        ck_assert_int_eq(test_restart_out(&t), ROLLOUT_HALTED);
        t.newborn.die_usec = USEC_INFINITY;
        test_run(&t, 2);
}

TEST(no_old_worker_is_touched_before_the_new_template_is_ready)
{
        t.newborn_template.load_usec = 60 * USEC_PER_SEC;
        test_restart(&t);
        test_after(&t, 59, test_templates(&t), 2);
        ck_assert_uint_eq(t.quiets, 0);
        ck_assert_uint_eq(t.starts, 3);
        ck_assert_uint_eq(test_counts(&t).ready, 3);
        ck_assert_int_eq(test_worker(&t, 1)->verdict.waits_for, WAIT_TEMPLATE);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_TEMPLATE);
        test_after(&t, 60, test_rollout(&t), ROLLOUT_DONE);
        ck_assert_uint_eq(test_of_generation(&t, 2), 3);
}

TEST(without_surge_the_old_ones_wait_for_it_as_well)
{
        t.fleet_settings.restart_surge = (struct share){.value = 0};
        t.newborn_template.load_usec = 60 * USEC_PER_SEC;
        test_restart(&t);
        test_after(&t, 59, t.quiets, 0);
        test_after(&t, 2, t.quiets, 1);
        ck_assert_int_eq(test_run_out(&t, 600), ROLLOUT_DONE);
}

TEST(the_old_template_is_kept_until_it_is_done_and_for_a_while)
{
        struct template *old = test_template(&t, 1);

        test_restart(&t);
        for (unsigned i = 0; i < 600 && test_rollout(&t) == ROLLOUT_RUNNING; i++) {
                ck_assert_int_eq(old->state, TEMPLATE_READY);
                ck_assert_uint_ge(test_counts(&t).ready, 3);
                test_tick(&t, 1);
        }
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_DONE);
        ck_assert_int_eq(old->state, TEMPLATE_READY);
        test_run(&t, KEEP_SECONDS + 2);
        ck_assert_ptr_null(test_template(&t, 1));
        ck_assert_int_eq(test_template(&t, 2)->state, TEMPLATE_READY);
        ck_assert_uint_eq(t.loads, 2);
}

TEST(three_loads_that_fail_halt_with_the_last_lines)
{
        t.newborn_template.die_usec = USEC_PER_SEC;
        t.newborn_template.log_tail = "undefined method 'foo'";
        ck_assert_int_eq(test_restart_out(&t), ROLLOUT_HALTED);
        ck_assert_uint_eq(t.loads, 4);
        ck_assert_uint_eq(t.quiets, 0);
        ck_assert_uint_eq(t.fleet->rollout.failures, 3);
        ck_assert_str_eq(quoted_reveal(&t.fleet->rollout.quoted), "undefined method 'foo'");
        ck_assert_str_eq(fleet_preload_refused(t.fleet), "");
        test_after(&t, 600, t.loads, 4);
        ck_assert_int_eq(test_template(&t, 1)->state, TEMPLATE_READY);
        ck_assert_uint_eq(test_counts(&t).ready, 3);
}

TEST(last_lines_that_are_read_later_are_reported_with_the_halt)
{
        static const struct exit_status exits[] = {
                {.known = true, .status = 1, .lines_token = 1},
                {.known = true, .status = 1, .lines_token = 2},
                {.known = true, .status = 1, .lines_token = 3},
        };

        test_restart(&t);
        for (size_t i = 0; i < ELEMENTSOF(exits); i++) {
                struct template *template;

                while (!(template = test_template(&t, 2)))
                        test_tick(&t, 1);
                free(template->process);
                template_observe_exit(template, &exits[i], "preload.rb", t.now);
        }
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_HALTED);
        observe_log_tail(t.fleet, 3, QUOTED("it went wrong"));
        ck_assert_str_eq(quoted_reveal(&t.fleet->rollout.quoted), "it went wrong");
}

TEST(a_template_that_never_loads_halts_it_though_redis_was_away_before)
{
        t.fleet_settings.rollout_timeout = USEC_PER_HOUR;
        t.newborn_template.load_usec = USEC_INFINITY;
        test_restart(&t);
        test_run(&t, 5);
        test_redis(&t, false);
        test_run(&t, 2);
        test_redis(&t, true);
        test_after(&t, 115, t.fleet->rollout.failures, 0);
        test_after(&t, 10, t.fleet->rollout.failures, 1);
        ck_assert_int_eq(test_run_out(&t, 600), ROLLOUT_HALTED);
        ck_assert_uint_eq(t.quiets, 0);
}

TEST(loads_that_fail_without_redis_say_nothing_of_the_release)
{
        test_redis(&t, false);
        t.newborn_template.die_usec = USEC_PER_SEC;
        test_restart_to(&t, 300, ROLLOUT_RUNNING);
        ck_assert_uint_eq(t.fleet->rollout.failures, 0);
        t.newborn_template.die_usec = USEC_INFINITY;
        test_redis(&t, true);
        ck_assert_int_eq(test_run_out(&t, 600), ROLLOUT_DONE);
        ck_assert_str_eq(fleet_preload_refused(t.fleet), "");
}

TEST(one_that_takes_too_long_to_load_is_named)
{
        t.fleet_settings.boot_timeout = USEC_PER_HOUR;
        t.newborn_template.load_usec = USEC_INFINITY;
        test_restart_to(&t, 602, ROLLOUT_HALTED);
        ck_assert_uint_eq(t.fleet->rollout.failures, 0);
        ck_assert_int_eq(fleet_template(t.fleet)->state, TEMPLATE_LOADING);
}

TEST(a_template_that_is_ready_is_progress)
{
        t.fleet_settings.boot_timeout = USEC_PER_HOUR;
        t.newborn_template.load_usec = 599 * USEC_PER_SEC;
        test_restart_to(&t, 602, ROLLOUT_RUNNING);
        ck_assert_int_eq(test_run_out(&t, 600), ROLLOUT_DONE);
}

TEST(forks_that_fail_halt)
{
        t.newborn_template.fork_fails = "it failed";
        ck_assert_int_eq(test_restart_out(&t), ROLLOUT_HALTED);
        ck_assert_uint_eq(t.fleet->rollout.failures, 3);
        ck_assert(strstr(t.fleet->rollout.error, "it failed"));
        ck_assert_str_eq(fleet_preload_refused(t.fleet), "");
        ck_assert_uint_eq(t.quiets, 0);
}

TEST(a_shortage_does_not_halt)
{
        t.newborn_template.fork_error = ENOMEM;
        test_restart_to(&t, 1200, ROLLOUT_RUNNING);
        ck_assert_uint_eq(t.quiets, 0);
        test_template_process(test_template(&t, 2))->fork_error = 0;
        ck_assert_int_eq(test_run_out(&t, 600), ROLLOUT_DONE);
}

TEST(after_a_halt_what_crashes_comes_back_from_the_old_template)
{
        halt_by_workers();
        ck_assert_uint_eq(test_of_generation(&t, 1), 3);
        ck_assert_uint_eq(test_of_generation(&t, 2), 0);
        unsigned loads = t.loads;
        for (unsigned index = 1; index <= 3; index++) {
                test_run(&t, 120);
                test_exit(&t, test_worker(&t, index), 1);
                test_after(&t, 2, test_of_generation(&t, 1), 3);
        }
        test_after(&t, 60, test_counts(&t).ready, 3);
        ck_assert_uint_eq(t.loads, loads);
        ck_assert_uint_eq(test_of_generation(&t, 2), 0);
}

/* They say nothing of the release, which is not the one that is forked. */
TEST(forks_of_the_old_template_that_fail_do_not_refuse_the_new_generation)
{
        halt_by_workers();
        test_template_process(test_template(&t, 1))->fork_fails = "it failed";
        test_exit(&t, test_worker(&t, 1), 1);
        unsigned failures = (unsigned)t.fleet->totals.template_failures;
        while (t.fleet->totals.template_failures < failures + 4)
                test_tick(&t, 1);
        ck_assert_str_eq(fleet_preload_refused(t.fleet), "");
        ck_assert_uint_eq(t.fleet->preload.failures, 0);
}

TEST(a_newer_restart_ends_the_one_in_the_middle)
{
        halt_by_workers();
        ck_assert_uint_eq(test_templates(&t), 2);
        struct template *middle = test_template(&t, 2);
        ck_assert_int_eq(middle->state, TEMPLATE_READY);
        test_template_process(middle)->deaf = true;
        test_restart(&t);
        test_after(&t, 1, middle->state, TEMPLATE_ENDING);
        ck_assert_int_eq(test_template(&t, 1)->state, TEMPLATE_READY);
        /* It has its place until it is gone. */
        ck_assert_int_eq(t.fleet->waits_for, WAIT_TEMPLATE);
        ck_assert_ptr_null(fleet_template(t.fleet));
        test_run(&t, 7);
        ck_assert_ptr_nonnull(fleet_template(t.fleet));
        ck_assert_int_eq(test_template(&t, 1)->state, TEMPLATE_READY);
        ck_assert_int_eq(test_run_out(&t, 600), ROLLOUT_DONE);
        test_after(&t, KEEP_SECONDS + 2, test_templates(&t), 1);
        ck_assert_uint_eq(test_of_generation(&t, 3), 3);
}

TEST(one_that_loads_for_a_restart_that_is_outrun_ends)
{
        t.newborn_template.load_usec = 60 * USEC_PER_SEC;
        test_restart(&t);
        test_run(&t, 5);
        test_restart(&t);
        test_run(&t, 2);
        ck_assert_ptr_null(test_template(&t, 2));
        ck_assert_int_eq(fleet_template(t.fleet)->state, TEMPLATE_LOADING);
        ck_assert_int_eq(test_run_out(&t, 600), ROLLOUT_DONE);
        ck_assert_uint_eq(test_of_generation(&t, 3), 3);
        ck_assert_uint_eq(t.fleet->totals.template_failures, 0);
}

TEST(while_the_new_one_loads_what_crashes_comes_back_from_the_old_one)
{
        t.newborn_template.load_usec = 60 * USEC_PER_SEC;
        test_restart(&t);
        test_run(&t, 50);
        test_exit(&t, test_worker(&t, 2), 1);
        test_after(&t, 3, test_of_generation(&t, 1), 3);
        ck_assert_uint_eq(t.starts, 4);
        test_after(&t, 4, t.starts, 4);
        ck_assert_uint_eq(t.fleet->rollout.failures, 0);
        ck_assert_int_eq(test_run_out(&t, 600), ROLLOUT_DONE);
        ck_assert_uint_eq(test_of_generation(&t, 2), 3);
        ck_assert_uint_eq(test_of_generation(&t, 1), 0);
}

TEST(forks_of_both_templates_have_places_of_their_own)
{
        struct template *old = test_template(&t, 1);

        test_template_process(old)->fork_usec = 3 * USEC_PER_SEC;
        t.newborn_template.fork_usec = 3 * USEC_PER_SEC;
        test_restart(&t);
        test_run(&t, 5);
        test_exit(&t, test_worker(&t, 2), 1);
        while (!template_forks(test_template(&t, 2)))
                test_tick(&t, 0.5);
        ck_assert_uint_eq(old->fork.index, 2);
        ck_assert_uint_eq(test_template(&t, 2)->fork.index, 4);
        ck_assert_uint_eq(fleet_free_index(t.fleet), 5);
        ck_assert_int_eq(test_run_out(&t, 600), ROLLOUT_DONE);
}

TEST(a_fork_of_the_old_template_that_sticks_holds_no_new_worker)
{
        struct template_process *old = test_template_process(test_template(&t, 1));

        test_run(&t, 60);
        old->held = true;
        test_restart(&t);
        for (unsigned index = 1; index <= 3; index++)
                test_exit(&t, test_worker(&t, index), 1);
        test_run(&t, 3);
        ck_assert(template_forks(test_template(&t, 1)));
        test_after(&t, 20, test_of_generation(&t, 2), 3);
        ck_assert_uint_eq(t.fleet->totals.template_failures, 0);
}

TEST(the_end_of_the_new_template_holds_the_old_workers)
{
        t.fleet_settings.restart_surge = (struct share){.value = 1};
        test_restart(&t);
        while (t.quiets == 0 || template_forks(test_template(&t, 2)))
                test_tick(&t, 1);
        unsigned quiets = t.quiets;
        t.newborn_template.load_usec = 60 * USEC_PER_SEC;
        test_template_exit(&t, test_template(&t, 2));
        test_after(&t, 60, t.quiets, quiets);
        ck_assert_uint_eq(t.fleet->rollout.failures, 0);
        ck_assert_int_eq(test_run_out(&t, 600), ROLLOUT_DONE);
}

TEST(where_it_is_refused_the_new_workers_boot_separately)
{
        t.newborn_template.unsafe = "its application leaves a socket open";
        ck_assert_int_eq(test_restart_out(&t), ROLLOUT_DONE);
        ck_assert_uint_eq(test_of_generation(&t, 2), 3);
        for (unsigned i = 4; i <= 6; i++)
                ck_assert(!test_worker(&t, i)->process.forked);
        ck_assert_uint_eq(t.fleet->rollout.failures, 0);
        test_after(&t, KEEP_SECONDS + 2, test_templates(&t), 0);
}

TEST(where_it_is_refused_without_surge_no_missing_worker_is_forked_from_the_old_template)
{
        t.fleet_settings.restart_surge = (struct share){.value = 0};
        t.newborn_template.unsafe = "its application leaves a socket open";
        ck_assert_int_eq(test_restart_out(&t), ROLLOUT_DONE);
        ck_assert_uint_eq(test_of_generation(&t, 2), 3);
        ck_assert_uint_eq(t.quiets, 3);
}

TEST(one_that_works_is_one_of_the_new_workers)
{
        t.newborn_template.running_jobs = true;
        ck_assert_int_eq(test_restart_out(&t), ROLLOUT_DONE);
        ck_assert_uint_eq(test_of_generation(&t, 2), 3);
        ck_assert_uint_eq(t.loads, 2);
        ck_assert_int_eq(test_worker(&t, 4)->generation, 2);
        ck_assert_uint_eq(t.template_kills, 0);
}

TEST(a_reload_that_outdates_takes_the_new_settings_for_new_workers_alone)
{
        struct fleet_settings changed = t.fleet_settings, *list[] = {&changed};
        struct settings settings = t.settings;

        changed.launch_hash++;
        settings.fleets = list;
        ck_assert_int_eq(world_reload(t.world, &settings, NULL, t.now), 0);
        ck_assert_uint_eq(t.fleet->generation, 2);
        test_after(&t, 60, test_templates(&t), 1);
        ck_assert_uint_eq(fleet_template(t.fleet)->generation, 2);
        ck_assert_uint_eq(test_of_generation(&t, 1), 3);
        ck_assert_uint_eq(t.quiets, 0);
        test_exit(&t, test_worker(&t, 1), 1);
        test_settle(&t);
        ck_assert_uint_eq(test_worker(&t, 1)->generation, 2);
        ck_assert(test_worker(&t, 1)->process.forked);
}

TEST(after_an_abort_with_nobody_of_the_old_code_left_it_ends)
{
        test_restart(&t);
        test_run(&t, 8);
        command_abort(t.fleet, NULL, t.now);
        test_after(&t, 1, test_template(&t, 1)->state, TEMPLATE_READY);
        for (unsigned index = 1; index <= 3; index++)
                test_exit(&t, test_worker(&t, index), 1);
        test_after(&t, 1, test_template(&t, 1)->state, TEMPLATE_ENDING);
        test_settle(&t);
        ck_assert_uint_eq(test_of_generation(&t, 2), 3);
}

TEST(after_an_abort_the_old_code_is_fallen_back_on_while_there_is_any)
{
        t.newborn.boot_usec = USEC_INFINITY;
        test_restart(&t);
        test_after(&t, 12, test_of_generation(&t, 2), 3);
        command_abort(t.fleet, NULL, t.now);
        t.newborn.boot_usec = 3 * USEC_PER_SEC;
        test_after(&t, 300, test_of_generation(&t, 1), 3);
        test_exit(&t, test_worker(&t, 1), 1);
        test_settle(&t);
        ck_assert_uint_eq(test_of_generation(&t, 1), 3);
        ck_assert_int_eq(test_template(&t, 1)->state, TEMPLATE_READY);
        /* The next restart is on its way to replace it all. */
        ck_assert_int_eq(test_restart_out(&t), ROLLOUT_DONE);
        ck_assert_uint_eq(test_of_generation(&t, 3), 3);
}

TEST_MAIN("template rollout", .each = {setup, teardown})
