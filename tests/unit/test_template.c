/* SPDX-License-Identifier: MIT */
/* Templates: how one loads and is forked, how that fails, and what a fleet does meanwhile. */
/* promises: P3 P4 */
#include "decide/command.h"
#include "model/deadlines.h"
#include "model/names.h"
#include "model/preload.h"
#include "model/rollout.h"
#include "observe/observe.h"
#include "observe/observe_template.h"
#include "quoting.h"
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

/* As often as sqmgr looks while a fork is awaited. */
static void run_fast(double seconds)
{
        for (unsigned i = 0; i < (unsigned)(seconds * 4); i++)
                test_tick(&t, 0.25);
}

TEST(the_application_is_loaded_before_any_worker_is_there)
{
        test_after(&t, 1, t.loads, 1);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_TEMPLATE);
        ck_assert_str_eq(wait_code(t.fleet->waits_for), "template");
        test_run(&t, 4);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_TEMPLATE);
        ck_assert_uint_eq(t.starts, 0);
        test_tick(&t, 1);
        ck_assert_uint_eq(test_events(&t, EVENT_TEMPLATE_READY), 1);
        test_settle(&t);
        ck_assert_uint_eq(t.loads, 1);
        ck_assert_uint_eq(test_events(&t, EVENT_TEMPLATE_LOADING), 1);
        ck_assert_uint_eq(test_forked(&t), 3);
        ck_assert_uint_eq(t.fleet->totals.forks, 3);
        ck_assert_uint_eq(test_events(&t, EVENT_STARTED), 3);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_NONE);
}

TEST(workers_are_forked_one_at_a_time)
{
        t.newborn_template.fork_usec = 1500 * USEC_PER_MSEC;
        test_load(&t);
        for (unsigned asked = 1; asked <= 3; asked++) {
                ck_assert_uint_eq(t.starts, asked);
                ck_assert_uint_eq(fleet_template(t.fleet)->fork.index, asked);
                run_fast(1);
                ck_assert_uint_eq(t.starts, asked);
                ck_assert_uint_eq(test_counts(&t).live, asked - 1);
                run_fast(0.5);
        }
        ck_assert_uint_eq(test_counts(&t).live, 3);
        ck_assert(!template_forks(fleet_template(t.fleet)));
}

TEST(without_a_ledger_a_fork_goes_on_once_the_state_reports_of_it)
{
        observe_ledger(t.world, false);
        test_load(&t);
        t.save_fails = true;
        test_run(&t, 60);
        struct worker *worker = test_worker(&t, 1);
        ck_assert(worker->process.awaits_go);
        ck_assert_uint_eq(t.gos, 0);
        ck_assert_int_eq(worker->state, WORKER_STARTING);
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_STATE);
        ck_assert_uint_eq(t.stops, 0);
        t.save_fails = false;
        test_after(&t, 1, t.gos, 3);
        ck_assert(!worker->process.awaits_go);
        /* The time that it has to come up begins. */
        ck_assert_uint_eq(worker_boot_deadline(worker), t.now + t.fleet_settings.boot_timeout);
        test_settle(&t);
        ck_assert_ptr_eq(test_worker(&t, 1), worker);
}

TEST(a_fork_in_a_ledger_goes_on_without_the_state)
{
        test_load(&t);
        t.save_fails = true;
        test_run(&t, 30);
        ck_assert_uint_eq(t.gos, 3);
}

TEST(without_a_state_for_boot_timeout_workers_boot_separately)
{
        struct template *template = settle();

        observe_ledger(t.world, false);
        t.fleet_settings.max_processes = 3;
        t.save_fails = true;
        test_exit(&t, test_worker(&t, 2), 1);
        test_run(&t, 60);
        ck_assert(test_worker(&t, 2)->process.awaits_go);
        ck_assert_str_eq(fleet_preload_refused(t.fleet), "");
        test_after(&t, 70, test_events(&t, EVENT_PRELOAD_REFUSED), 1);
        ck_assert(strstr(fleet_preload_refused(t.fleet), "the state file cannot be written"));
        test_after(&t, 60, test_counts(&t).active, 3);
        ck_assert(!test_worker(&t, 2)->process.forked);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
        /* The next one that ends is replaced without the wait. */
        test_exit(&t, test_worker(&t, 1), 1);
        test_after(&t, 60, test_counts(&t).active, 3);
        ck_assert_uint_eq(test_events(&t, EVENT_PRELOAD_REFUSED), 1);
        ck_assert_uint_eq(t.loads, 1);

        t.save_fails = false;
        test_run(&t, 60);
        ck_assert_str_eq(fleet_preload_refused(t.fleet), "");
        test_exit(&t, test_worker(&t, 3), 1);
        test_settle(&t);
        ck_assert(test_worker(&t, 3)->process.forked);
        ck_assert_ptr_eq(fleet_template(t.fleet), template);
}

TEST(a_fork_that_was_asked_for_takes_its_place)
{
        t.newborn_template.fork_usec = USEC_INFINITY;
        test_load(&t);
        ck_assert_uint_eq(fleet_free_index(t.fleet), 2);
        ck_assert_uint_eq(test_spawn(&t)->index, 2);
        ck_assert_uint_eq(fleet_free_index(t.fleet), 3);
        t.fleet_settings.max_processes = 2;
        ck_assert_uint_eq(test_plans(&t, ACTION_START, NULL), 0);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_PLACES);
        test_redis(&t, false);
        ck_assert(fleet_wants_fast_polls(t.fleet, t.now));
}

TEST(nothing_is_loaded_while_found_processes_may_be_workers)
{
        t.fleet->held = true;
        ck_assert_uint_eq(test_plans(&t, ACTION_LOAD, NULL), 0);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_ADOPTION);
        t.fleet->held = false;
        ck_assert_uint_eq(test_plans(&t, ACTION_LOAD, NULL), 1);
}

TEST(one_that_cannot_be_forked_is_refused_for_its_generation)
{
        t.newborn_template.unsafe = "its application leaves a socket open";
        settle();
        ck_assert_uint_eq(test_event(&t, EVENT_PRELOAD_REFUSED)->generation, 1);
        ck_assert_str_eq(quoted_reveal(&t.fleet->preload.quoted), "its application leaves a socket open");
        ck_assert_uint_eq(test_forked(&t), 0);
        test_after(&t, 60, test_templates(&t), 0);
        ck_assert_uint_eq(t.loads, 1);
        ck_assert_uint_eq(t.fleet->totals.template_failures, 0);
        ck_assert_uint_eq(test_events(&t, EVENT_TEMPLATE_READY), 0);
        test_exit(&t, test_worker(&t, 2), 1);
        settle();
        ck_assert_uint_eq(test_forked(&t), 0);

        t.newborn_template.unsafe = NULL;
        command_restart(t.fleet, NULL, t.now);
        ck_assert_str_eq(fleet_preload_refused(t.fleet), "");
        test_after(&t, 60, t.fleet->rollout.state, ROLLOUT_DONE);
        ck_assert_uint_eq(test_forked(&t), 3);
}

/* A restart in the moment in which it is refused makes it the older one. */
TEST(one_that_cannot_be_forked_is_forked_for_no_other_generation)
{
        test_tick(&t, 1);
        struct template *template = fleet_template(t.fleet);

        template_observe_ready(template, template->pid, template->pid_start, QUOTED("it cannot be"), t.now);
        command_restart(t.fleet, NULL, t.now);
        ck_assert_ptr_null(fleet_template_to_fork(t.fleet, true));
        ck_assert_uint_eq(test_plans(&t, ACTION_TEMPLATE_END, NULL), 1);
        ck_assert_uint_eq(test_planned(&t, ACTION_START, NULL), 0);
}

TEST(a_command_that_does_not_see_the_script_is_refused_at_once)
{
        t.newborn_template.die_usec = USEC_PER_SEC;
        t.newborn_template.log_tail =
                "<internal:require>: cannot load such file -- /usr/libexec/sqmgr-preload.rb (LoadError)";
        settle();
        ck_assert_uint_eq(t.loads, 1);
        ck_assert_uint_eq(test_events(&t, EVENT_PRELOAD_REFUSED), 1);
        ck_assert_uint_eq(test_events(&t, EVENT_TEMPLATE_FAILED), 0);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
}

TEST(a_release_that_lacks_a_file_of_its_own_fails)
{
        t.newborn_template.die_usec = USEC_PER_SEC;
        t.newborn_template.log_tail = "cannot load such file -- rails (LoadError)";
        test_run(&t, 2);
        ck_assert_str_eq(fleet_preload_refused(t.fleet), "");
        ck_assert_uint_eq(test_events(&t, EVENT_TEMPLATE_FAILED), 1);
        ck_assert_uint_eq(t.fleet->crash.count, 1);
}

/* RUBYOPT was lost on the way: the process started as a template is a worker that accepts jobs. */
TEST(one_that_works_is_a_worker)
{
        t.newborn_template.running_jobs = true;
        test_tick(&t, 1);
        struct template *template = fleet_template(t.fleet);
        pid_t pid = template->pid;
        ck_assert_uint_eq(template->boot_polled_at, 0);
        test_after(&t, 1, template->boot_polled_at, t.now);
        settle();
        struct worker *worker = test_worker(&t, 1);
        ck_assert_int_eq(worker->process.pid, pid);
        ck_assert(!worker->process.forked && !worker->process.awaits_go);
        ck_assert_uint_eq(test_events(&t, EVENT_PRELOAD_REFUSED), 1);
        ck_assert_uint_eq(test_templates(&t), 0);
        ck_assert_uint_eq(t.loads, 1);
        test_after(&t, 600, worker->state, WORKER_ACTIVE);
        ck_assert_uint_eq(t.template_ends + t.template_kills + t.quiets + t.stops, 0);
        ck_assert_uint_eq(test_forked(&t), 0);
}

TEST(one_that_serves_is_no_worker_whatever_its_titles_say)
{
        ck_assert_ptr_null(template_observe_booted(test_load(&t), true, t.now));
        ck_assert_uint_eq(test_templates(&t), 1);
}

TEST(after_three_loads_that_fail_workers_boot_separately)
{
        t.newborn_template.die_usec = USEC_PER_SEC;
        settle();
        ck_assert_uint_eq(t.loads, 3);
        ck_assert_uint_eq(t.fleet->totals.template_failures, 3);
        ck_assert_uint_eq(test_events(&t, EVENT_TEMPLATE_FAILED), 3);
        ck_assert_uint_eq(test_events(&t, EVENT_PRELOAD_REFUSED), 1);
        ck_assert(strstr(fleet_preload_refused(t.fleet), t.fleet->crash_last));
        test_after(&t, 300, t.loads, 3);
}

/* It is the machine that lacks what it takes, and has it again some time. */
TEST(a_load_that_cannot_be_started_is_tried_until_it_is)
{
        t.load_error = EMFILE;
        test_restart(&t);
        test_run(&t, 120);
        ck_assert_uint_gt(test_events(&t, EVENT_TEMPLATE_FAILED), 3);
        ck_assert_uint_eq(test_events(&t, EVENT_PLACES_HELD), 1);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_RUNNING);
        ck_assert_uint_eq(t.fleet->rollout.failures, 0);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_FORK);
        ck_assert_str_eq(fleet_preload_refused(t.fleet), "");
        t.load_error = 0;
        settle();
        ck_assert_int_eq(fleet_template(t.fleet)->state, TEMPLATE_READY);
}

TEST(the_next_load_waits_after_one_that_failed)
{
        t.newborn_template.die_usec = USEC_PER_SEC;
        while (t.fleet->crash.count < 2)
                test_tick(&t, 0.25);
        ck_assert_uint_eq(t.loads, 2);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_BACKOFF);
        ck_assert_uint_eq(t.pass.plan.wake_at, t.fleet->crash.next_at);
        t.now = t.fleet->crash.next_at;
        ck_assert_uint_eq(test_plans(&t, ACTION_LOAD, NULL), 1);
}

static const int shortages[] = {ENOMEM, EAGAIN, EMFILE, ENFILE};

TEST_LOOP(a_shortage_is_waited_out_and_never_counts, (int)ELEMENTSOF(shortages))
{
        struct template *template = settle();
        unsigned starts = t.starts;

        test_run(&t, 60);
        test_exit(&t, test_worker(&t, 2), 1);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
        test_template_process(template)->fork_error = shortages[_i];
        for (unsigned i = 0; i < 60; i++) {
                run_fast(1);
                ck_assert_int_eq(t.fleet->waits_for, WAIT_FORK);
        }
        ck_assert_uint_gt(t.starts, starts + 20);
        ck_assert_uint_le(t.starts, starts + 61);
        ck_assert_uint_eq(test_events(&t, EVENT_PLACES_HELD), 1);
        ck_assert_uint_eq(t.fleet->totals.template_failures, 0);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
        ck_assert_uint_eq(t.fleet->preload.failures, 0);
        test_template_process(template)->fork_error = 0;
        test_settle(&t);
        ck_assert_uint_eq(t.loads, 1);
        /* It is over: the next fork waits for nothing. */
        test_exit(&t, test_worker(&t, 1), 1);
        test_tick(&t, 0.1);
        ck_assert(template_forks(template));
        ck_assert_int_eq(t.fleet->waits_for, WAIT_NONE);
}

TEST(a_request_that_descriptors_are_short_for_is_made_again)
{
        t.ask_error = EMFILE;
        test_load(&t);
        test_after(&t, 30, t.fleet->waits_for, WAIT_FORK);
        ck_assert_uint_le(t.starts, 31);
        ck_assert_uint_eq(t.pass.plan.wake_at, t.fleet->preload.retry_at);
        t.ask_error = 0;
        settle();
        ck_assert_uint_eq(t.fleet->totals.template_failures, 0);
}

TEST(after_three_forks_that_fail_workers_boot_separately)
{
        t.newborn_template.fork_fails = "an at_fork hook raised";
        settle();
        ck_assert_uint_eq(t.loads, 1);
        ck_assert_uint_eq(t.fleet->totals.template_failures, 3);
        ck_assert(strstr(fleet_preload_refused(t.fleet), "an at_fork hook raised"));
        ck_assert_uint_eq(test_templates(&t), 0);
}

TEST(a_fork_that_succeeds_ends_the_row)
{
        struct template *template = test_load(&t);
        struct template_process *process = test_template_process(template);

        process->fork_fails = "it failed";
        for (unsigned round = 0; round < 2; round++) {
                while (t.fleet->preload.failures < 2)
                        test_tick(&t, 0.25);
                process->fork_fails = NULL;
                while (t.fleet->preload.failures > 0)
                        test_tick(&t, 0.25);
                process->fork_fails = "it failed";
        }
        ck_assert_str_eq(fleet_preload_refused(t.fleet), "");
}

static void outdate(void)
{
        rollout_outdate(t.fleet, t.now);
}

static void restart_and_abort(void)
{
        command_restart(t.fleet, NULL, t.now);
        command_abort(t.fleet, NULL, t.now);
}

static void (*const renewals[])(void) = {outdate, restart_and_abort};

TEST_LOOP(what_failed_of_another_generation_is_not_of_the_row, (int)ELEMENTSOF(renewals))
{
        for (unsigned i = 0; i < 2; i++)
                test_template_exit(&t, test_load(&t));
        renewals[_i]();
        test_template_exit(&t, test_load(&t));
        ck_assert_uint_eq(t.fleet->totals.template_failures, 3);
        ck_assert_str_eq(fleet_preload_refused(t.fleet), "");
        settle();
        ck_assert_uint_eq(test_forked(&t), 3);
}

/* Long lives that end in a backoff leave their places to be filled at once, each by one try. */
TEST(a_fork_that_fails_uses_a_freed_place_up)
{
        struct template *template = settle();

        test_run(&t, 120);
        t.fleet->crash = (struct backoff){.count = 1, .failed_at = t.now, .next_at = t.now + USEC_PER_HOUR};
        test_exit(&t, test_worker(&t, 2), 1);
        ck_assert_uint_eq(t.fleet->crash.freed, 1);
        test_template_process(template)->fork_fails = "it failed";
        test_after(&t, 10, t.fleet->totals.template_failures, 1);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_BACKOFF);
}

TEST(one_that_does_not_answer_is_ended)
{
        t.newborn_template.fork_usec = USEC_INFINITY;
        struct template *template = test_load(&t);
        pid_t pid = template->pid;

        ck_assert_uint_eq(fleet_fork_patience(t.fleet), 5 * USEC_PER_SEC);
        run_fast(4.75);
        ck_assert_uint_eq(t.template_ends, 0);
        t.newborn_template.fork_usec = 0;
        run_fast(0.25);
        ck_assert_uint_eq(t.template_ends, 1);
        ck_assert_uint_eq(test_events(&t, EVENT_TEMPLATE_FAILED), 1);
        ck_assert_uint_eq(t.fleet->crash.count, 1);
        ck_assert_int_ne(settle()->pid, pid);
        ck_assert_uint_eq(test_forked(&t), 3);
        ck_assert_uint_eq(t.loads, 2);
}

TEST(time_in_which_sqmgr_was_late_hardly_counts)
{
        t.newborn_template.fork_usec = USEC_INFINITY;
        struct template *template = test_load(&t);

        for (unsigned i = 0; i < 9; i++)
                test_tick(&t, 10);
        ck_assert_uint_eq(t.template_ends, 0);
        ck_assert_uint_eq(template->fork.waited, 4500 * USEC_PER_MSEC);
        test_tick(&t, 10);
        ck_assert_uint_eq(t.template_ends, 1);
}

TEST(one_that_is_held_has_twenty_times_as_long)
{
        t.newborn_template.fork_usec = USEC_INFINITY;
        test_template_process(test_load(&t))->held = true;
        run_fast(99.75);
        ck_assert_uint_eq(t.template_ends, 0);
        run_fast(0.25);
        ck_assert_uint_eq(t.template_ends, 1);
}

TEST(patience_is_ten_times_the_slowest_fork)
{
        t.newborn_template.fork_usec = 2 * USEC_PER_SEC;
        struct template *template = test_load(&t);

        run_fast(2);
        ck_assert_uint_eq(t.fleet->preload.slowest_fork, 2 * USEC_PER_SEC);
        ck_assert_uint_eq(fleet_fork_patience(t.fleet), 20 * USEC_PER_SEC);
        test_template_process(template)->fork_usec = USEC_INFINITY;
        run_fast(19.75);
        ck_assert_uint_eq(t.template_ends, 0);
        run_fast(0.25);
        ck_assert_uint_eq(t.template_ends, 1);
}

/* Else a template that was stopped once would be waited for without end. */
TEST(what_does_not_count_is_no_slow_fork)
{
        struct template *template = test_load(&t);

        test_template_process(template)->held = true;
        run_fast(60);
        test_template_process(template)->held = false;
        test_tick(&t, 60);
        ck_assert_uint_eq(t.fleet->totals.forks, 1);
        ck_assert_uint_lt(t.fleet->preload.slowest_fork, 4 * USEC_PER_SEC);
}

TEST_MAIN("template", .each = {setup, teardown})
