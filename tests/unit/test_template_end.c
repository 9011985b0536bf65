/* SPDX-License-Identifier: MIT */
/* Templates: how one ends, by itself and as told, and what becomes of those of an earlier sqmgr. */
/* promises: P1 P4 */
#include "decide/command.h"
#include "model/describe.h"
#include "model/fleets.h"
#include "model/preload.h"
#include "model/world.h"
#include "observe/observe.h"
#include "observe/observe_template.h"
#include "world.h"

TEST_WORLD(3)
{
        test_preload(&t);
}

static struct template *settle(void)
{
        test_settle(&t);
        return fleet_template(t.fleet);
}

TEST(one_that_never_loads_is_ended_after_boot_timeout)
{
        t.newborn_template.load_usec = USEC_INFINITY;
        t.newborn_template.deaf = true;
        test_after(&t, 121, t.template_ends, 1);
        ck_assert_uint_eq(test_events(&t, EVENT_TEMPLATE_FAILED), 1);
        ck_assert_uint_eq(t.fleet->totals.template_failures, 1);
        ck_assert_ptr_null(fleet_template(t.fleet));
        /* It may run jobs: it has the time that a worker has. */
        test_after(&t, 59, t.template_kills, 0);
        test_after(&t, 1, t.template_kills, 1);
        test_after(&t, 1, t.fleet->totals.template_failures, 1);
}

/* As after two drains of sqmgr in a row: both places of templates are taken until stop_timeout. */
TEST(while_all_of_them_end_missing_workers_boot_separately)
{
        t.newborn_template.load_usec = USEC_INFINITY;
        t.newborn_template.deaf = true;
        for (unsigned i = 1; i <= TEMPLATES_MAX; i++) {
                test_after(&t, 2, t.loads, i);
                ck_assert_uint_eq(t.starts, 0);
                command_stop(t.fleet, false, NULL, t.now);
                test_after(&t, 1, t.template_ends, i);
                command_start(t.fleet, NULL, t.now);
        }
        test_after(&t, 1, t.starts, 3);
        ck_assert_uint_eq(t.loads, TEMPLATES_MAX);
        ck_assert_uint_eq(test_forked(&t), 0);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_NONE);
        /* The next ones are forked. */
        t.newborn_template = (struct template_process){.load_usec = USEC_PER_SEC, .die_usec = USEC_INFINITY};
        test_after(&t, 60, t.loads, TEMPLATES_MAX + 1);
}

TEST(boot_timeout_is_not_over_while_redis_is_away_nor_before_a_look)
{
        t.newborn_template.load_usec = USEC_INFINITY;
        test_tick(&t, 1);
        struct template *template = fleet_template(t.fleet);

        test_redis(&t, false);
        test_run(&t, 600);
        test_redis(&t, true);
        test_after(&t, 119, t.template_ends, 0);
        ck_assert_uint_eq(t.pass.plan.wake_at, t.now + USEC_PER_SEC);
        t.now += 2 * USEC_PER_SEC;
        ck_assert_uint_eq(test_plans(&t, ACTION_TEMPLATE_END, NULL), 0);
        ck_assert_ptr_null(template_observe_booted(template, false, t.now));
        ck_assert_uint_eq(test_plans(&t, ACTION_TEMPLATE_END, NULL), 1);
}

TEST(the_end_of_a_ready_one_leaves_its_workers_alone)
{
        struct template *template = settle();

        test_run(&t, 60);
        test_template_exit(&t, template);
        test_after(&t, 1, t.loads, 2);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
        ck_assert_uint_eq(t.fleet->preload.failures, 0);
        ck_assert_uint_eq(test_events(&t, EVENT_TEMPLATE_FAILED), 1);
        ck_assert_uint_eq(test_counts(&t).ready, 3);
        test_after(&t, 60, test_counts(&t).ready, 3);
        ck_assert_uint_eq(t.quiets + t.stops, 0);
        ck_assert_uint_eq(t.starts, 3);
}

TEST(after_a_short_life_the_next_one_waits)
{
        struct template *template = settle();

        while (t.now < template->state_at + 58 * USEC_PER_SEC)
                test_tick(&t, 1);
        test_template_exit(&t, template);
        test_tick(&t, 0);
        ck_assert_uint_gt(t.fleet->crash.next_at, t.now);
        ck_assert_uint_eq(t.loads, 1);
        ck_assert_uint_eq(t.fleet->crash.count, 1);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_BACKOFF);
        ck_assert_uint_eq(t.fleet->preload.failures, 0);
        ck_assert_uint_eq(test_counts(&t).ready, 3);
}

TEST(one_that_dies_as_it_forks_has_failed)
{
        t.newborn_template.fork_usec = USEC_INFINITY;
        for (unsigned i = 1; i <= 3; i++) {
                test_template_exit(&t, test_load(&t));
                ck_assert_uint_eq(t.fleet->totals.template_failures, i);
        }
        ck_assert_uint_eq(t.fleet->preload.failures, 3);
        ck_assert_str_ne(fleet_preload_refused(t.fleet), "");
        ck_assert_uint_eq(t.fleet->crash.count, 3);
        ck_assert_uint_eq(fleet_free_index(t.fleet), 1);
}

TEST(a_fork_that_dies_before_it_is_reported_to_go_on_failed_to_start)
{
        observe_ledger(t.world, false);
        test_load(&t);
        t.save_fails = true;
        test_run(&t, 3);
        ck_assert(test_worker(&t, 2)->process.awaits_go);
        test_exit(&t, test_worker(&t, 2), 1);
        ck_assert_uint_eq(test_event(&t, EVENT_START_FAILED)->index, 2);
        ck_assert_uint_eq(test_events(&t, EVENT_CRASHED), 0);
        ck_assert_uint_eq(t.fleet->crash.count, 1);
        /* Where that cannot be seen it was the end of its sqmgr. */
        observe_exit(test_worker(&t, 1), &(struct exit_status){.known = false}, t.now);
        ck_assert_uint_eq(test_events(&t, EVENT_START_FAILED), 1);
        ck_assert_uint_eq(t.fleet->crash.count, 1);
}

static void order_quiet(void)
{
        command_quiet_fleet(t.fleet, NULL, t.now);
}

static void order_stop(void)
{
        command_stop(t.fleet, false, NULL, t.now);
}

static void order_shutdown(void)
{
        command_shutdown(t.world, t.now);
}

static void order_none(void)
{
        t.fleet_settings.active_process_count = 0;
        t.fleet->scale = 0;
}

static void order_no_preload(void)
{
        t.fleet_settings.preload = 0;
}

static void (*const orders[])(void) = {order_quiet, order_stop, order_shutdown, order_none, order_no_preload};

TEST_LOOP(where_none_is_to_be_forked_it_ends_at_once, (int)ELEMENTSOF(orders))
{
        settle();
        orders[_i]();
        test_after(&t, 1, t.template_ends, 1);
        ck_assert_str_eq(template_state_name(t.fleet->templates[0].state), "ending");
        test_after(&t, 1, test_templates(&t), 0);
        test_after(&t, 30, t.loads, 1);
        ck_assert_uint_eq(t.fleet->totals.template_failures, 0);
        ck_assert_uint_eq(test_events(&t, EVENT_TEMPLATE_FAILED), 0);
}

TEST(one_that_loads_ends_as_well_and_another_is_loaded_later)
{
        t.newborn_template.load_usec = 60 * USEC_PER_SEC;
        test_run(&t, 10);
        order_stop();
        test_after(&t, 2, test_templates(&t), 0);
        command_start(t.fleet, NULL, t.now);
        test_settle(&t);
        ck_assert_uint_eq(t.loads, 2);
        ck_assert_uint_eq(test_forked(&t), 3);
        ck_assert_uint_eq(t.fleet->totals.template_failures, 0);
}

TEST(one_that_serves_and_does_not_end_is_killed_soon)
{
        t.newborn_template.deaf = true;
        settle();
        order_no_preload();
        test_tick(&t, 1);
        test_after(&t, 4, t.template_kills, 0);
        ck_assert_uint_eq(t.pass.plan.wake_at, t.now + USEC_PER_SEC);
        test_after(&t, 1, t.template_kills, 1);
        test_after(&t, 1, test_templates(&t), 0);
        ck_assert_uint_eq(test_counts(&t).ready, 3);
}

TEST(a_fork_ends_with_the_template_that_was_asked_for_it)
{
        t.newborn_template.fork_usec = USEC_INFINITY;
        test_load(&t);
        order_quiet();
        test_after(&t, 1, t.template_ends, 1);
        ck_assert_uint_eq(fleet_free_index(t.fleet), 1);
        ck_assert_uint_eq(t.fleet->totals.template_failures, 0);
}

TEST(what_is_said_after_its_end_was_asked_for_changes_nothing)
{
        t.newborn_template.deaf = true;
        test_run(&t, 2);
        struct template *template = fleet_template(t.fleet);
        order_stop();
        test_tick(&t, 1);
        template_observe_ready(template, template->pid, template->pid_start, NULL, t.now);
        ck_assert_int_eq(template->state, TEMPLATE_ENDING);
        ck_assert_uint_eq(test_events(&t, EVENT_TEMPLATE_READY), 0);
        /* But that it serves, and runs no jobs. */
        ck_assert_uint_eq(template_kill_at(template), t.now + 5 * USEC_PER_SEC);
}

TEST(a_removed_fleet_is_not_forgotten_before_its_template)
{
        struct fleet_settings removed = t.fleet_settings, *list[] = {&removed};
        struct settings settings = t.settings;

        t.newborn_template.deaf = true;
        test_load(&t);
        test_template_process(fleet_template(t.fleet))->fork_usec = USEC_INFINITY;
        order_stop();
        test_tick(&t, 1);
        removed.removed = true;
        settings.fleets = list;
        ck_assert_int_eq(world_reload(t.world, &settings, NULL, t.now), 0);
        ck_assert_uint_eq(t.fleet->n_workers, 0);
        world_forget_removed(t.world);
        ck_assert_uint_eq(t.world->n_fleets, 1);
        test_template_exit(&t, test_template(&t, 1));
        world_forget_removed(t.world);
        ck_assert_uint_eq(t.world->n_fleets, 0);
}

/* A template of an earlier sqmgr, by its state file; it serves below a wrapper. */
static struct template known_template(enum template_state state)
{
        return (struct template){
                .state = state,
                .generation = 1,
                .pid = 50,
                .pid_start = 500,
                .serving_pid = state == TEMPLATE_READY ? 51 : 0,
                .serving_start = state == TEMPLATE_READY ? 510 : 0,
                .started_at = t.now - 60 * USEC_PER_SEC,
                .state_at = t.now - 30 * USEC_PER_SEC,
                .memory_bytes = 1000,
        };
}

static struct template *adopt(enum template_state state, bool connected)
{
        const struct template known = known_template(state);
        struct template *template = template_observe_adopted(t.fleet, &known, connected, 500, 510);

        ck_assert_ptr_nonnull(template);
        ck_assert_ptr_nonnull(template->process = malloc(sizeof(*template->process)));
        *template->process = t.newborn_template;
        template->process->started_at = known.started_at;
        return template;
}

TEST(a_pid_in_use_again_is_no_template)
{
        const struct template known = known_template(TEMPLATE_READY),
                              loading = known_template(TEMPLATE_LOADING);

        ck_assert_ptr_null(template_observe_adopted(t.fleet, &known, false, 501, 511));
        ck_assert_ptr_null(template_observe_adopted(t.fleet, &known, false, 0, 0));
        ck_assert_ptr_null(template_observe_adopted(t.fleet, &loading, false, 0, 0));
        ck_assert_uint_eq(test_templates(&t), 0);
        const struct template *template = template_observe_adopted(t.fleet, &known, false, 0, 510);
        ck_assert_int_eq(template->pid, 51);
        ck_assert_uint_eq(template->pid_start, 510);
}

TEST(one_that_is_still_spoken_with_is_forked)
{
        struct template *template = adopt(TEMPLATE_READY, true);

        test_settle(&t);
        ck_assert_uint_eq(t.loads, 0);
        ck_assert_uint_eq(test_forked(&t), 3);
        ck_assert_ptr_eq(fleet_template(t.fleet), template);
        ck_assert_int_eq(template->serving_pid, 51);
}

TEST(a_lost_one_that_served_is_ended_and_another_loaded_at_once)
{
        struct template *template = adopt(TEMPLATE_READY, false);

        template->process->deaf = true;
        test_after(&t, 1, t.template_ends, 1);
        ck_assert_uint_eq(t.loads, 1);
        ck_assert_uint_eq(t.starts, 0);
        test_after(&t, 6, t.template_kills, 1);
        test_settle(&t);
        ck_assert_uint_eq(test_forked(&t), 3);
        ck_assert_uint_eq(t.fleet->totals.template_failures, 0);
        ck_assert_uint_eq(test_events(&t, EVENT_TEMPLATE_FAILED), 0);
}

/* It may turn out to be a worker. */
TEST(a_lost_one_that_loads_is_given_the_time_to_show_what_it_is)
{
        t.newborn_template.load_usec = 100 * USEC_PER_SEC;
        t.newborn_template.running_jobs = true;
        struct template *template = adopt(TEMPLATE_LOADING, false);

        t.newborn_template.load_usec = 5 * USEC_PER_SEC;
        test_after(&t, 1, t.loads, 1);
        ck_assert(template_is_kept(template));
        test_after(&t, 50, t.template_ends + t.template_kills, 0);
        ck_assert_uint_eq(test_templates(&t), 0);
        unsigned found = 0;
        for (size_t i = 0; i < t.fleet->n_workers; i++)
                found += t.fleet->workers[i]->process.pid == 50;
        ck_assert_uint_eq(found, 1);
}

TEST(the_end_of_a_lost_one_is_no_failure)
{
        t.newborn_template.load_usec = USEC_INFINITY;
        test_template_exit(&t, adopt(TEMPLATE_LOADING, false));
        ck_assert_uint_eq(test_templates(&t), 0);
        ck_assert_uint_eq(t.fleet->totals.template_failures, 0);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
        ck_assert_uint_eq(test_events(&t, EVENT_TEMPLATE_FAILED), 0);
}

TEST(a_lost_one_that_never_shows_itself_is_ended_and_counts_for_nothing)
{
        t.newborn_template.load_usec = USEC_INFINITY;
        adopt(TEMPLATE_LOADING, false);
        t.newborn_template.load_usec = 5 * USEC_PER_SEC;
        test_settle(&t);
        ck_assert_uint_eq(t.template_ends, 0);
        test_after(&t, 120, t.template_ends, 1);
        ck_assert_uint_eq(test_templates(&t), 1);
        ck_assert_uint_eq(t.fleet->totals.template_failures, 0);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
        ck_assert_uint_eq(t.loads, 1);
}

TEST_MAIN("template end", .each = {setup, teardown})
