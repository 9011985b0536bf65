/* SPDX-License-Identifier: MIT */
/* What becomes of a worker with more than one process that accepts jobs. */
/* promises: P1 P6 */
#include "decide/command.h"
#include "frameworks/rq/rq.h"
#include "model/deadlines.h"
#include "model/describe.h"
#include "observe/observe.h"
#include "world.h"

TEST_WORLD(2)
{
}

/* The worker was asked to exit, and its heartbeat process did. */
static struct worker *reported_wrapper(void)
{
        struct worker *worker = test_spawn_quiet(&t);

        observe_heartbeat_process(worker, 555, 1, t.now);
        observe_stopped(worker, REASON_OPERATOR, 0, t.now);
        t.now += USEC_PER_SEC;
        observe_heartbeat_process(worker, 0, 0, t.now);
        ck_assert_int_eq(worker->state, WORKER_STOPPING);
        return worker;
}

static bool kills(struct worker *worker)
{
        return test_plans(&t, ACTION_KILL, worker) > 0;
}

TEST(a_wrapper_that_stays_is_reported_before_it_is_killed)
{
        struct worker *worker = reported_wrapper();

        observe_booted(worker, false, t.now);
        ck_assert(!test_stops(&t, worker) && !kills(worker));
        t.now += t.fleet_settings.stop_timeout;
        ck_assert(!test_stops(&t, worker) && !kills(worker)); /* it is looked at once more */
        observe_booted(worker, false, t.now);
        ck_assert(test_stops(&t, worker) && !kills(worker));
        observe_stopped(worker, REASON_OPERATOR, 0, t.now);
        ck_assert(!test_stops(&t, worker) && !kills(worker));
        t.now += t.fleet_settings.stop_timeout;
        observe_booted(worker, false, t.now);
        ck_assert(!test_stops(&t, worker) && kills(worker));
}

TEST(what_has_booted_in_it_since_is_neither_reported_nor_killed)
{
        struct worker *worker = reported_wrapper();

        for (unsigned i = 0; i < 5; i++) {
                t.now += t.fleet_settings.stop_timeout;
                observe_booted(worker, true, t.now);
                ck_assert(!test_stops(&t, worker) && !kills(worker));
        }
        t.fleet->force = true; /* the operator's word */
        ck_assert(test_stops(&t, worker));
        observe_stopped(worker, REASON_OPERATOR, 0, t.now);
        t.now += t.fleet_settings.stop_timeout;
        ck_assert(kills(worker));
}

/* It begins to beat before anybody could tell it. */
TEST_LOOP(by_force_too_what_is_started_next_is_reported_before_it_is_killed, 4)
{
        struct traits traits = *t.fleet_settings.traits;
        struct worker *worker = _i % 2 == 0 ? reported_wrapper() : test_spawn_quiet(&t);

        traits.quiet_is_stop = _i > 1;
        t.fleet_settings.traits = &traits;
        command_stop(t.fleet, true, NULL, t.now);
        observe_heartbeat_process(worker, 0, 0, t.now);
        observe_heartbeat_process(worker, 556, 2, t.now);
        test_heartbeat(&t, worker, 500, 1, false);
        t.now += t.fleet_settings.stop_timeout;
        ck_assert(test_stops(&t, worker) && !kills(worker));
        ck_assert_int_eq(action_signal(&t.pass.plan.actions[0]), ACTION_SIGNAL_STOP);
        observe_stopped(worker, REASON_OPERATOR, 0, t.now);
        ck_assert(!test_stops(&t, worker) && !kills(worker));
        t.now += t.fleet_settings.stop_timeout;
        ck_assert(kills(worker));
}

/* A second signal costs some their jobs. */
TEST_LOOP(by_force_none_is_reported_again_with_its_group, 2)
{
        struct worker *worker = test_spawn(&t);

        if (_i == 0)
                command_stop(t.fleet, true, NULL, t.now);
        else
                command_stop_worker(worker, true, NULL, t.now);
        observe_stopped(worker, REASON_OPERATOR, 0, t.now);
        observe_heartbeat_process(worker, worker->process.pid, worker->process.start, t.now);
        for (unsigned i = 0; i < 2 * WORKER_NOT_QUIET_HEARTBEATS; i++) {
                t.now += USEC_PER_SEC;
                test_heartbeat(&t, worker, 500 + i, 1, false);
                ck_assert_int_eq(worker->state, WORKER_STOPPING);
                ck_assert(!test_stops(&t, worker));
        }
        t.now += t.fleet_settings.stop_timeout;
        ck_assert(kills(worker));
}

/* A framework whose beats do not say whether it is quiet: while it runs a job it is taken at our word. */
TEST_LOOP(what_is_started_next_is_not_quiet_at_our_word, 3)
{
        const struct heartbeat heartbeat = {.sent_usec = 500, .busy = 1};
        struct worker *worker = test_spawn_quiet(&t);

        observe_heartbeat_process(worker, 555, 1, t.now);
        ck_assert(heartbeat_complete(worker, &heartbeat, 1, false).quiet);
        ck_assert(!heartbeat_complete(worker, &heartbeat, 0, false)
                           .quiet); /* it reports itself quiet by then */
        if (_i > 0)
                observe_stopped(worker, REASON_OPERATOR, 0, t.now);
        observe_heartbeat_process(worker, 0, 0, t.now);
        if (_i > 1)
                observe_stopped(worker, REASON_OPERATOR, 0, t.now);
        observe_heartbeat_process(worker, 556, 2, t.now);
        for (unsigned i = 0; i < WORKER_NOT_QUIET_HEARTBEATS; i++) {
                struct heartbeat next = heartbeat_complete(worker, &heartbeat, 1, false);

                ck_assert(!next.quiet);
                next.sent_usec += i;
                t.now += USEC_PER_SEC;
                observe_heartbeat(worker, &next, t.now);
        }
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
}

TEST(what_takes_jobs_in_it_is_a_worker_again)
{
        struct worker *worker = reported_wrapper();

        observe_heartbeat_process(worker, 556, 2, t.now);
        test_heartbeat(&t, worker, 500, 1, false);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert(worker->orders.succeeded);
        ck_assert_uint_eq(test_events(&t, EVENT_SEVERAL), 1);
        t.now += t.fleet_settings.stop_timeout;
        ck_assert(!test_stops(&t, worker) && !kills(worker));
}

/* It was signaled with all its processes, and repeats the earlier heartbeat. */
TEST(one_that_was_reported_as_it_began_to_heartbeat_is_not_taken_for_another)
{
        struct worker *worker = test_spawn(&t);

        t.now += t.fleet_settings.boot_timeout;
        observe_stopped(worker, REASON_BOOT, 0, t.now);
        observe_heartbeat_process(worker, worker->process.pid, worker->process.start, t.now);
        for (unsigned i = 0; i < 3; i++) {
                ck_assert_int_eq(worker->state, WORKER_STOPPING);
                t.now += USEC_PER_SEC;
                test_heartbeat(&t, worker, 500 + i, 1, false);
        }
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
}

/* A Redis that takes over may not have what its record said last, and a record that stands is a beat. */
TEST_LOOP(one_that_was_quiet_is_not_reported_again_for_an_older_record, WORKER_NOT_QUIET_HEARTBEATS)
{
        struct worker *worker = test_spawn(&t);
        double at = 500;

        observe_stopped(worker, REASON_OPERATOR, 0, t.now);
        observe_heartbeat_process(worker, 555, 1, t.now);
        for (unsigned i = 0; i < 2 * WORKER_NOT_QUIET_HEARTBEATS; i++) {
                t.now += USEC_PER_SEC;
                test_heartbeat(&t, worker, at++, 1, i == (unsigned)_i);
        }
        ck_assert_int_eq(worker->state, WORKER_STOPPING);
        ck_assert(!test_stops(&t, worker));
        /* Of the next one it says nothing. */
        observe_heartbeat_process(worker, 556, 2, t.now);
        for (unsigned i = 0; i < WORKER_NOT_QUIET_HEARTBEATS; i++) {
                ck_assert_int_eq(worker->state, WORKER_STOPPING);
                t.now += USEC_PER_SEC;
                test_heartbeat(&t, worker, at++, 1, false);
        }
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
}

/* Each reading of RQ's record counts as a heartbeat. The record that a Redis has after a failover may be of
 * before the signal, and RQ writes only once that it was asked. */
TEST(one_that_was_reported_is_not_reported_again_for_a_record_that_stands)
{
        struct worker *worker = test_spawn(&t);

        t.fleet_settings.traits = &rq_traits;
        observe_stopped(worker, REASON_RESTART, 0, t.now);
        observe_heartbeat_process(worker, 555, 1, t.now);
        for (unsigned i = 0; i < 2 * WORKER_NOT_QUIET_HEARTBEATS; i++) {
                t.now += USEC_PER_SEC;
                test_heartbeat(&t, worker, 500 + i, 1, false);
                ck_assert_int_eq(worker->state, WORKER_STOPPING);
                ck_assert(!test_stops(&t, worker));
        }
        ck_assert_uint_eq(test_events(&t, EVENT_SEVERAL), 0);
}

/* The state does not tell that a process succeeds one that was asked to exit. */
TEST(what_is_started_next_after_a_restart_leaves_although_the_next_sqmgr_adopts_it_as_active)
{
        test_settle(&t);
        struct worker *worker = test_worker(&t, 1);
        struct process *process = test_process(worker);

        process->busy = 1;
        ck_assert_int_eq(test_restart_out(&t), ROLLOUT_DONE);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        process->silent = true;
        observe_heartbeat_process(worker, 0, 0, t.now);
        observe_heartbeat_process(worker, 556, 2, t.now);
        test_heartbeat(&t, worker, 500, 1, false);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        worker->orders.succeeded = false;
        test_plan(&t);
        ck_assert_int_eq(worker->verdict.retire_reason, REASON_RESTART);
        ck_assert_uint_eq(test_planned(&t, ACTION_START, NULL), 0);
}

TEST(one_that_is_left_behind_leaves_and_is_replaced)
{
        const struct exit_status killed = {.known = true, .by_signal = true, .status = 9};
        struct worker *worker = test_spawn_ready(&t);

        test_plan(&t);
        unsigned planned = test_planned(&t, ACTION_START, NULL);
        observe_left_behind(worker, &killed, 777, 3, t.now);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        ck_assert_int_eq(worker->process.pid, 777);
        ck_assert_uint_eq(test_events(&t, EVENT_CRASHED), 1);
        ck_assert_uint_eq(test_events(&t, EVENT_SEVERAL), 1);
        observe_booted(worker, true, t.now);
        ck_assert(!test_stops(&t, worker));
        ck_assert_uint_eq(test_planned(&t, ACTION_START, NULL), planned + 1);
}

TEST(what_heartbeats_beside_it_is_looked_for_when_it_is_ready_and_reported_once)
{
        struct worker *worker = test_spawn_ready(&t);

        ck_assert(!(worker_poll_items(worker, false, worker_ready_at(worker) - 1) & POLL_SIBLINGS));
        t.now += USEC_PER_HOUR; /* while Redis was away, say */
        ck_assert(worker_poll_items(worker, false, t.now) & POLL_SIBLINGS);
        observe_sibling(worker, 0, t.now);
        t.now += 30 * USEC_PER_SEC;
        ck_assert(worker_poll_items(worker, false, t.now) & POLL_SIBLINGS);
        ck_assert_uint_eq(test_events(&t, EVENT_SEVERAL), 0);
        observe_sibling(worker, 777, t.now);
        observe_sibling(worker, 777, t.now);
        ck_assert_uint_eq(test_events(&t, EVENT_SEVERAL), 1);
        t.now += 30 * USEC_PER_SEC;
        ck_assert(!(worker_poll_items(worker, false, t.now) & POLL_SIBLINGS));
}

TEST_MAIN("several", .each = {setup, teardown})
