/* SPDX-License-Identifier: MIT */
/* Frameworks unlike Sidekiq: quiet is stop in one, and in the other beats alone prove a worker idle. */
/* promises: P1 */
#include "model/culprits.h"
#include "model/rescue.h"
#include "world.h"

static const struct traits quiet_is_stop = {
        .name = "quiet-is-stop", .quiet_is_stop = true, .stale_usec = 30 * USEC_PER_SEC};
static const struct traits beats_alone = {.name = "beats-alone", .stale_usec = 30 * USEC_PER_SEC};

static struct test_world t;
static struct worker *worker;
static double clock_of_beats;

static void setup(void)
{
        test_world_open(&t, 1);
        t.fleet_settings.traits = &quiet_is_stop;
        worker = test_spawn_ready(&t);
        clock_of_beats = 200;
}

static void teardown(void)
{
        test_world_close(&t);
}

/* A beat that is new, and says nothing of a work list. */
static void beat(unsigned busy, bool quiet)
{
        const struct heartbeat heartbeat = {
                .beat_usec = (uint64_t)(++clock_of_beats * 1e6), .busy = busy, .quiet = quiet};

        t.now += USEC_PER_SEC;
        observe_heartbeat(worker, &heartbeat, t.now);
}

/* What the next plan has for the worker; NULL: nothing. */
static const struct action *planned(void)
{
        const struct plan *plan = &t.pass.plan;

        test_plan(&t);
        for (size_t i = 0; i < plan->n_actions; i++)
                if (plan->actions[i].worker == worker)
                        return &plan->actions[i];
        return NULL;
}

static void expect(enum action_kind kind, enum action_signal signal)
{
        const struct action *action = planned();

        ck_assert_ptr_nonnull(action);
        ck_assert_int_eq(action->kind, kind);
        ck_assert_int_eq(action_signal(action), signal);
}

static void quiet(void)
{
        command_quiet_worker(t.world, worker, t.now);
        test_plan(&t);
        test_execute(&t);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
}

START_TEST(to_quiet_one_is_to_stop_it)
{
        command_quiet_worker(t.world, worker, t.now);
        expect(ACTION_QUIET, ACTION_SIGNAL_STOP);
        t.fleet_settings.traits = &beats_alone;
        expect(ACTION_QUIET, ACTION_SIGNAL_QUIET);
}
END_TEST

START_TEST(one_that_was_told_is_left_alone_until_it_exits)
{
        beat(1, false);
        quiet();
        for (unsigned i = 0; i < 10; i++) {
                beat(1, i > 5);
                ck_assert_ptr_null(planned());
                ck_assert_str_eq(test_waits_for(&t, worker), "waits for 1 running job to finish");
        }
        for (unsigned i = 0; i < 10; i++) {
                beat(0, true);
                ck_assert_ptr_null(planned());
                ck_assert_str_eq(test_waits_for(&t, worker), "waits for it to exit");
        }
        test_exit(&t, worker, 0);
        ck_assert_uint_eq(test_events(&t, EVENT_GONE), 1);
        ck_assert_uint_eq(test_events(&t, EVENT_CRASHED), 0);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
}
END_TEST

START_TEST(somebody_else_may_have_told_it)
{
        beat(1, true);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        ck_assert_int_eq(worker->reason, REASON_EXTERNAL);
        command_quiet_worker(t.world, worker, t.now);
        beat(0, true);
        beat(0, true);
        ck_assert_ptr_null(planned());
}
END_TEST

START_TEST(drain_timeout_ends_it_without_a_second_signal)
{
        t.fleet_settings.drain_timeout = 10 * USEC_PER_MIN;
        beat(1, false);
        quiet();
        t.now += t.fleet_settings.drain_timeout - USEC_PER_SEC;
        ck_assert_ptr_null(planned());
        t.now += USEC_PER_SEC;
        expect(ACTION_STOP, ACTION_SIGNAL_NONE);
        test_execute(&t);
        ck_assert_int_eq(worker->state, WORKER_STOPPING);
        t.now += t.fleet_settings.stop_timeout - 1;
        ck_assert_ptr_null(planned());
        t.now += 1;
        expect(ACTION_KILL, ACTION_SIGNAL_KILL);
}
END_TEST

START_TEST(by_force_it_ends_without_a_second_signal)
{
        beat(1, false);
        command_stop(t.world, t.fleet, true, t.now);
        expect(ACTION_STOP, ACTION_SIGNAL_STOP);
        t.fleet->force = false;
        quiet();
        t.fleet->force = true;
        expect(ACTION_STOP, ACTION_SIGNAL_NONE);
        test_execute(&t);
        t.now += t.fleet_settings.stop_timeout;
        expect(ACTION_KILL, ACTION_SIGNAL_KILL);
}
END_TEST

START_TEST(at_the_shutdown_deadline_it_ends_without_a_second_signal)
{
        beat(1, false);
        quiet();
        command_shutdown(t.world, t.now);
        ck_assert_ptr_null(planned());
        t.now += t.settings.shutdown_timeout;
        expect(ACTION_STOP, ACTION_SIGNAL_NONE);
}
END_TEST

START_TEST(a_wrapper_that_outlives_it_is_told_for_itself)
{
        observe_beat_process(worker, worker->pid + 50, 1, t.now);
        beat(1, false);
        quiet();
        observe_beat_process(worker, 0, 0, t.now);
        expect(ACTION_STOP, ACTION_SIGNAL_STOP);
}
END_TEST

START_TEST(nothing_is_looked_for_that_proves_nothing)
{
        beat(0, false);
        ck_assert_uint_eq(worker_looks(worker, false, t.now) & LOOK_THREADS, 0);
        quiet();
        beat(0, true);
        ck_assert_uint_eq(worker_looks(worker, true, t.now), 0);
        ck_assert_uint_eq(worker_looks(worker, false, t.now), LOOK_BEAT | LOOK_MEMORY);
}
END_TEST

START_TEST(its_jobs_are_not_looked_up)
{
        const struct exit_status killed = {.known = true, .by_signal = true, .status = 9};

        t.fleet_settings.memory_limit = 1;
        observe_memory(worker, 2, t.now);
        beat(1, false);
        beat(1, false);
        ck_assert(!culprits_take(worker));
        ck_assert(!rescue_is_due(worker, &killed));
}
END_TEST

START_TEST(two_beats_prove_one_idle_that_has_no_work_list)
{
        t.fleet_settings.traits = &beats_alone;
        beat(0, false);
        quiet();
        beat(0, true);
        ck_assert_ptr_null(planned());
        ck_assert_uint_eq(worker_looks(worker, true, t.now), LOOK_BEAT);
        beat(0, true);
        expect(ACTION_STOP, ACTION_SIGNAL_STOP);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("traits");
        TCase *tcase = tcase_create("traits");

        tcase_add_checked_fixture(tcase, setup, teardown);
        tcase_add_test(tcase, to_quiet_one_is_to_stop_it);
        tcase_add_test(tcase, one_that_was_told_is_left_alone_until_it_exits);
        tcase_add_test(tcase, somebody_else_may_have_told_it);
        tcase_add_test(tcase, drain_timeout_ends_it_without_a_second_signal);
        tcase_add_test(tcase, by_force_it_ends_without_a_second_signal);
        tcase_add_test(tcase, at_the_shutdown_deadline_it_ends_without_a_second_signal);
        tcase_add_test(tcase, a_wrapper_that_outlives_it_is_told_for_itself);
        tcase_add_test(tcase, nothing_is_looked_for_that_proves_nothing);
        tcase_add_test(tcase, its_jobs_are_not_looked_up);
        tcase_add_test(tcase, two_beats_prove_one_idle_that_has_no_work_list);
        suite_add_tcase(suite, tcase);
        return unit_main(suite);
}
