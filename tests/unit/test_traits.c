/* SPDX-License-Identifier: MIT */
/* Frameworks unlike Sidekiq: quiet is stop in one, and in the other beats alone prove a worker idle. */
/* promises: P1 P2 */
#include "decide/command.h"
#include "model/deadlines.h"
#include "model/describe.h"
#include "model/idle_proof.h"
#include "model/rollout.h"
#include "model/worker_facts.h"
#include "observe/culprits.h"
#include "observe/observe.h"
#include "observe/rescue.h"
#include "world.h"

static const struct traits quiet_is_stop = {.name = "quiet-is-stop",
                                            .quiet_is_stop = true,
                                            .reports_busy = true,
                                            .stale_usec = 30 * USEC_PER_SEC};
static const struct traits quiet_when_idle = {.name = "quiet-at-rest",
                                              .quiet_is_stop = true,
                                              .quiet_when_idle = true,
                                              .reports_busy = true,
                                              .stale_usec = 30 * USEC_PER_SEC};
static const struct traits heartbeats_alone = {
        .name = "beats-alone", .reports_busy = true, .stale_usec = 30 * USEC_PER_SEC};

static const struct traits may_refuse = {.name = "may-refuse",
                                         .uncaught_is_stop = true,
                                         .has_work_list = true,
                                         .reports_busy = true,
                                         .stale_usec = 7 * USEC_PER_SEC};

static const struct traits title_completes = {.name = "title-completes",
                                              .has_work_list = true,
                                              .jobs_outlive_it = true,
                                              .title_completes = true,
                                              .reports_busy = true,
                                              .stale_usec = 30 * USEC_PER_SEC};

static struct worker *worker;
static double clock_of_heartbeats;

TEST_WORLD(1)
{
        t.fleet_settings.traits = &quiet_is_stop;
        worker = test_spawn_ready(&t);
        clock_of_heartbeats = 200;
}

/* A beat that is new, and says nothing of a work list. */
static void send_heartbeat(unsigned busy, bool quiet)
{
        const struct heartbeat heartbeat = {
                .sent_usec = (uint64_t)(++clock_of_heartbeats * 1e6), .busy = busy, .quiet = quiet};

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
        command_quiet_worker(worker, NULL, t.now);
        test_plan(&t);
        test_execute(&t);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
}

TEST(to_quiet_one_is_to_stop_it)
{
        command_quiet_worker(worker, NULL, t.now);
        expect(ACTION_QUIET, ACTION_SIGNAL_STOP);
        t.fleet_settings.traits = &heartbeats_alone;
        expect(ACTION_QUIET, ACTION_SIGNAL_QUIET);
}

/* A request may be lost, or be undone by others: heartbeats decide. */
TEST(a_request_is_repeated_until_heartbeats_show_that_it_was_heeded)
{
        t.fleet_settings.traits = &may_refuse;
        quiet();
        for (unsigned i = 0; i < 3; i++) {
                ck_assert_ptr_null(planned());
                send_heartbeat(0, false);
        }
        expect(ACTION_QUIET, ACTION_SIGNAL_QUIET);
        test_execute(&t);
        send_heartbeat(0, true);
        send_heartbeat(0, true);
        ck_assert_ptr_null(planned());
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_HEARTBEATS);
        /* The tasks that wait in the worker have run, too. */
        const struct heartbeat idle = {.sent_usec = (uint64_t)(clock_of_heartbeats * 1e6),
                                       .quiet = true,
                                       .work_list_known = true,
                                       .work_list_empty = true};
        observe_heartbeat(worker, &idle, t.now);
        expect(ACTION_STOP, ACTION_SIGNAL_STOP);
}

/* The worker does not catch the quiet signal any more: the stop signal lets it finish its jobs, and is sent
 * once. */
TEST(one_that_refuses_a_request_later_is_stopped_instead)
{
        t.fleet_settings.traits = &may_refuse;
        send_heartbeat(1, false);
        quiet();
        for (unsigned i = 0; i < 3; i++)
                send_heartbeat(1, false);
        expect(ACTION_QUIET, ACTION_SIGNAL_QUIET);
        t.quiet_error = ENOTSUP;
        test_execute(&t);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert_uint_eq(test_events(&t, EVENT_QUIET_UNCAUGHT), 1);
        t.quiet_error = 0;
        expect(ACTION_QUIET, ACTION_SIGNAL_STOP);
        test_execute(&t);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        for (unsigned i = 0; i < 10; i++) {
                send_heartbeat(1, false);
                ck_assert_ptr_null(planned());
        }
        test_exit(&t, worker, 0);
        ck_assert_uint_eq(test_events(&t, EVENT_CRASHED), 0);
}

/* The worker was adopted as quiet, from a state that does not say since when it was active. */
TEST(one_that_was_adopted_as_quiet_and_refuses_a_request_is_not_ready_at_once)
{
        t.fleet_settings.traits = &may_refuse;
        quiet();
        worker->active_at = 0;
        send_heartbeat(0, false);
        observe_quieted(worker, REASON_OPERATOR, ENOTSUP, t.now);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert(!worker_ready(worker, t.now));
        t.now += t.fleet_settings.ready_after;
        send_heartbeat(0, false);
        ck_assert(worker_ready(worker, t.now));
}

/* Somebody else has quieted the worker later: no stop signal was sent, so its jobs end before that signal. */
TEST(one_that_refused_a_request_and_is_quieted_from_outside_is_stopped_once_idle)
{
        t.fleet_settings.traits = &may_refuse;
        quiet();
        t.quiet_error = ENOTSUP;
        for (unsigned i = 0; i < 3; i++)
                send_heartbeat(1, false);
        expect(ACTION_QUIET, ACTION_SIGNAL_QUIET);
        test_execute(&t);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        send_heartbeat(1, true);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        ck_assert_int_eq(worker->reason, REASON_EXTERNAL);
        ck_assert(!worker_is_asked_to_exit(worker));
        /* Its heartbeats from before, which denied that it was quiet, are none about this. */
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 0);
        t.fleet_settings.drain_timeout = USEC_PER_MIN;
        t.now += USEC_PER_MIN;
        send_heartbeat(1, true);
        expect(ACTION_STOP, ACTION_SIGNAL_STOP);
}

/* The restart has counted it as replaced, and is done. */
TEST(one_that_refuses_a_request_after_the_restart_is_still_replaced)
{
        t.fleet_settings.traits = &may_refuse;
        t.fleet->rollout.state = ROLLOUT_RUNNING;
        generation_restart(t.fleet);
        observe_quieted(worker, REASON_RESTART, 0, t.now);
        t.fleet->rollout.state = ROLLOUT_DONE;
        observe_quieted(worker, REASON_RESTART, ENOTSUP, t.now);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        send_heartbeat(1, false);
        test_plan(&t);
        ck_assert_int_eq(worker->verdict.retire_reason, REASON_RESTART);
}

/* Tries to quiet it, which its taking jobs forbids. */
static void quiet_in_vain(void)
{
        t.quiet_error = EAGAIN;
        test_plan(&t);
        test_execute(&t);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert_int_eq(worker->orders.signal_error, 0);
}

TEST(one_that_may_be_taking_a_job_is_tried_again_but_not_for_ever)
{
        t.fleet_settings.traits = &quiet_when_idle;
        command_quiet_worker(worker, NULL, t.now);
        ck_assert_uint_eq(worker_poll_items(worker, true, t.now), 0);
        for (unsigned i = 0; i < 10; i++) {
                ck_assert(worker_awaits_idle_check(worker, t.now));
                quiet_in_vain();
                test_plan(&t);
                ck_assert_int_eq(worker->verdict.waits_for, WAIT_IDLE_CHECK);
                ck_assert_uint_ne(worker_poll_items(worker, true, t.now), 0);
                send_heartbeat(1, false);
        }
        quiet_in_vain();
        ck_assert(!worker_awaits_idle_check(worker, t.now));
        ck_assert_uint_eq(test_events(&t, EVENT_SIGNAL_REFUSED), 0);
        t.quiet_error = 0;
        quiet();
}

TEST(one_that_was_to_leave_once_is_waited_for_anew)
{
        t.fleet_settings.traits = &quiet_when_idle;
        command_quiet_worker(worker, NULL, t.now);
        quiet_in_vain();
        worker->orders.quiet = false;
        for (unsigned i = 0; i < 20; i++)
                send_heartbeat(0, false);
        ck_assert_uint_eq(worker_poll_items(worker, true, t.now), 0);
        ck_assert(worker_awaits_idle_check(worker, t.now));
        worker->orders.quiet = true;
        quiet_in_vain();
        ck_assert(worker_awaits_idle_check(worker, t.now));
}

TEST(rest_is_for_those_that_lose_jobs_without)
{
        ck_assert(!worker_awaits_idle_check(worker, t.now));
}

TEST(one_that_was_reported_is_left_alone_until_it_exits)
{
        send_heartbeat(1, false);
        quiet();
        for (unsigned i = 0; i < 10; i++) {
                send_heartbeat(1, i > 5);
                ck_assert_ptr_null(planned());
                ck_assert_int_eq(worker->verdict.waits_for, WAIT_JOBS);
                ck_assert_uint_eq(worker->heartbeat.busy, 1);
        }
        for (unsigned i = 0; i < 10; i++) {
                send_heartbeat(0, true);
                ck_assert_ptr_null(planned());
                ck_assert_int_eq(worker->verdict.waits_for, WAIT_EXIT);
        }
        test_exit(&t, worker, 0);
        ck_assert_uint_eq(test_events(&t, EVENT_GONE), 1);
        ck_assert_uint_eq(test_events(&t, EVENT_CRASHED), 0);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
}

TEST(somebody_else_may_have_reported_it)
{
        send_heartbeat(1, true);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        ck_assert_int_eq(worker->reason, REASON_EXTERNAL);
        command_quiet_worker(worker, NULL, t.now);
        send_heartbeat(0, true);
        send_heartbeat(0, true);
        ck_assert_ptr_null(planned());
}

TEST(drain_timeout_ends_it_without_a_second_signal)
{
        t.fleet_settings.drain_timeout = 10 * USEC_PER_MIN;
        send_heartbeat(1, false);
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

TEST(by_force_it_ends_without_a_second_signal)
{
        send_heartbeat(1, false);
        command_stop(t.fleet, true, NULL, t.now);
        expect(ACTION_STOP, ACTION_SIGNAL_STOP);
        t.fleet->force = false;
        quiet();
        t.fleet->force = true;
        expect(ACTION_STOP, ACTION_SIGNAL_NONE);
        test_execute(&t);
        t.now += t.fleet_settings.stop_timeout;
        expect(ACTION_KILL, ACTION_SIGNAL_KILL);
}

TEST(at_the_shutdown_deadline_it_ends_without_a_second_signal)
{
        send_heartbeat(1, false);
        quiet();
        command_shutdown(t.world, t.now);
        ck_assert_ptr_null(planned());
        t.now += t.settings.shutdown_timeout;
        expect(ACTION_STOP, ACTION_SIGNAL_NONE);
}

TEST(a_wrapper_that_outlives_it_is_reported_for_itself)
{
        observe_heartbeat_process(worker, worker->process.pid + 50, 1, t.now);
        send_heartbeat(1, false);
        quiet();
        observe_heartbeat_process(worker, 0, 0, t.now);
        observe_booted(worker, false, t.now);
        expect(ACTION_STOP, ACTION_SIGNAL_STOP);
}

TEST(nothing_is_looked_for_that_proves_nothing)
{
        send_heartbeat(0, false);
        ck_assert_uint_eq(worker_poll_items(worker, false, t.now) & POLL_THREADS, 0);
        quiet();
        send_heartbeat(0, true);
        ck_assert_uint_eq(worker_poll_items(worker, true, t.now), 0);
        ck_assert_uint_eq(worker_poll_items(worker, false, t.now), POLL_HEARTBEAT | POLL_MEMORY);
}

TEST(its_jobs_are_not_looked_up)
{
        const struct exit_status killed = {.known = true, .by_signal = true, .status = 9};

        t.fleet_settings.memory_limit = 1;
        observe_memory(worker, 2, t.now);
        send_heartbeat(1, false);
        send_heartbeat(1, false);
        ck_assert(!culprits_take(worker));
        ck_assert(!rescue_is_due(worker, &killed));
}

TEST(two_heartbeats_prove_one_idle_that_has_no_work_list)
{
        t.fleet_settings.traits = &heartbeats_alone;
        send_heartbeat(0, false);
        quiet();
        send_heartbeat(0, true);
        ck_assert_ptr_null(planned());
        ck_assert_uint_eq(worker_poll_items(worker, true, t.now), POLL_HEARTBEAT);
        send_heartbeat(0, true);
        expect(ACTION_STOP, ACTION_SIGNAL_STOP);
}

/* It wakes up once in a while, and sets its title then. */
TEST(one_whose_title_says_not_yet_that_it_is_quiet_is_looked_at_now_and_then)
{
        t.fleet_settings.traits = &title_completes;
        send_heartbeat(0, false);
        quiet();
        ck_assert_uint_eq(worker_poll_items(worker, true, t.now), POLL_HEARTBEAT | POLL_WORK_LIST);
        send_heartbeat(0, false);
        ck_assert_uint_eq(worker_poll_items(worker, true, t.now), 0);
        ck_assert_uint_eq(worker_poll_items(worker, false, t.now),
                          POLL_HEARTBEAT | POLL_WORK_LIST | POLL_MEMORY);
        ck_assert_ptr_null(planned());
        send_heartbeat(0, false);
        send_heartbeat(0, false);
        expect(ACTION_QUIET, ACTION_SIGNAL_QUIET);
        test_execute(&t);
        send_heartbeat(0, true);
        ck_assert_uint_eq(worker_poll_items(worker, true, t.now), POLL_HEARTBEAT | POLL_WORK_LIST);
}

/* As where somebody pauses the queues for a while. */
TEST(one_that_says_it_is_paused_and_was_not_reported_takes_jobs_as_before)
{
        const struct heartbeat now = {.sent_usec = 1};

        t.fleet_settings.traits = &title_completes;
        ck_assert(!heartbeat_complete(worker, &now, 0, true).quiet);
        send_heartbeat(0, false);
        quiet();
        ck_assert(heartbeat_complete(worker, &now, 0, true).quiet);
        ck_assert(heartbeat_complete(worker, &now, 1, false).quiet);
        ck_assert(!heartbeat_complete(worker, &now, 0, false).quiet);
}

TEST(jobs_that_its_framework_brings_back_itself_are_left_to_it)
{
        const struct exit_status killed = {.known = true, .by_signal = true, .status = 9};

        t.fleet_settings.traits = &title_completes;
        t.fleet_settings.memory_limit = 1;
        observe_memory(worker, 2, t.now);
        send_heartbeat(1, false);
        send_heartbeat(1, false);
        ck_assert(culprits_take(worker));
        ck_assert(!rescue_is_due(worker, &killed));
}

TEST(a_job_that_outlives_its_worker_is_finished)
{
        const struct exit_status killed = {.known = true, .by_signal = true, .status = 9};

        t.fleet_settings.traits = &title_completes;
        observe_left_behind(worker, &killed, 777, 3, t.now);
        ck_assert_uint_eq(test_events(&t, EVENT_SEVERAL), 1);
        ck_assert(worker->orders.finishes_job);
        ck_assert_uint_eq(test_events(&t, EVENT_CRASHED), 1);
        ck_assert_int_eq(worker->reason, REASON_CRASH);
        /* Whatever title a job gives itself: its exit is the proof. */
        for (unsigned i = 0; i < 3; i++) {
                observe_booted(worker, i == 0, t.now);
                ck_assert_ptr_null(planned());
                ck_assert_int_eq(worker->verdict.waits_for, WAIT_JOBS);
                ck_assert_uint_eq(worker->heartbeat.busy, 1);
        }
        t.fleet_settings.drain_timeout = USEC_PER_MIN;
        t.now += USEC_PER_MIN;
        expect(ACTION_STOP, ACTION_SIGNAL_STOP);
        test_exit(&t, worker, 0);
        ck_assert_uint_eq(test_events(&t, EVENT_CRASHED), 1);
        ck_assert_int_eq(test_event(&t, EVENT_GONE)->reason, REASON_CRASH);
}

/* The wrapper around it ended after it. */
TEST(a_job_that_outlives_worker_and_wrapper_is_finished_beside_another_worker)
{
        const struct exit_status killed = {.known = true, .status = 137};

        t.fleet_settings.traits = &title_completes;
        observe_heartbeat_process(worker, 0, 0, t.now);
        ck_assert_int_eq(worker->state, WORKER_STARTING);
        observe_left_behind(worker, &killed, 777, 3, t.now);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        observe_booted(worker, true, t.now);
        ck_assert_uint_eq(test_events(&t, EVENT_ELSEWHERE), 0);
        t.now += t.fleet_settings.boot_timeout;
        ck_assert_ptr_null(planned());
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_JOBS);
        ck_assert_uint_eq(worker->heartbeat.busy, 1);
        ck_assert_uint_eq(test_planned(&t, ACTION_START, NULL), 1);
}

/* Of a command that starts several. */
TEST(what_is_left_and_heartbeats_is_a_worker_and_no_job)
{
        const struct exit_status killed = {.known = true, .by_signal = true, .status = 9};

        t.fleet_settings.traits = &title_completes;
        observe_left_behind(worker, &killed, 777, 3, t.now);
        observe_heartbeat_process(worker, 777, 3, t.now);
        send_heartbeat(0, false);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert(!worker->orders.finishes_job);
}

/* Two containers of one host name may have the same pids. */
TEST(a_heartbeat_of_another_process_of_its_pid_is_none)
{
        struct heartbeat heartbeat = {.quiet = true, .start = worker->process.heartbeat_start + 1};

        t.fleet_settings.traits = &heartbeats_alone;
        send_heartbeat(1, false);
        for (unsigned i = 0; i < 4; i++) {
                heartbeat.sent_usec = (uint64_t)(++clock_of_heartbeats * 1e6);
                t.now += USEC_PER_SEC;
                observe_heartbeat(worker, &heartbeat, t.now);
        }
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert_uint_eq(worker->heartbeat.busy, 1);
        heartbeat.start = worker->process.heartbeat_start;
        observe_heartbeat(worker, &heartbeat, t.now);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
}

TEST_MAIN("traits", .each = {setup, teardown})
