/* SPDX-License-Identifier: MIT */
/* Workers that show no boot, although they may run jobs: absence of evidence is no evidence. */
/* promises: P1 P5 P6 P7 */
#include "decide/command.h"
#include "frameworks/rq/rq.h"
#include "model/deadlines.h"
#include "model/idle_proof.h"
#include "model/rollout.h"
#include "model/world.h"
#include "observe/observe.h"
#include "world.h"

#define SEC USEC_PER_SEC

TEST_WORLD(2)
{
        t.newborn.boot_usec = USEC_INFINITY;
        t.newborn.works = true;
}

TEST(what_may_run_jobs_is_kept_and_gets_no_signal)
{
        test_tick(&t, 1);
        test_after(&t, 1000, t.stops + t.quiets + t.kills, 0);
        ck_assert_uint_eq(t.starts, 2);
        ck_assert_uint_eq(test_events(&t, EVENT_BOOT_TIMEOUT), 2);
        ck_assert(worker_is_unseen(test_worker(&t, 1)));
        ck_assert_int_eq(test_worker(&t, 1)->verdict.waits_for, WAIT_UNSEEN);
        ck_assert_uint_eq(fleet_count(t.fleet, t.now).active, 0);
}

TEST(what_does_nothing_has_failed_to_boot)
{
        t.newborn.works = false;
        test_tick(&t, 1);
        test_after(&t, 129, t.stops, 0);
        test_after(&t, 3, t.stops, 2);
        ck_assert_uint_eq(test_events(&t, EVENT_BOOT_TIMEOUT), 2);
        ck_assert_uint_eq(t.fleet->crash.count, 2);
}

TEST(what_wakes_up_between_two_readings_does_something)
{
        struct worker *worker = test_spawn(&t);

        test_process(worker)->silent = true;
        t.now = worker_boot_deadline(worker);
        for (uint64_t wakeups = 1; wakeups < 60; wakeups++) {
                observe_activity(worker, true, wakeups, t.now);
                observe_booted(worker, false, t.now);
                ck_assert(!worker_boot_has_failed(worker));
                t.now += SEC;
        }
        ck_assert(worker_is_unseen(worker));
        observe_activity(worker, true, 59, t.now + 11 * SEC);
        observe_booted(worker, false, t.now + 11 * SEC);
        ck_assert(worker_boot_has_failed(worker));
}

TEST(where_others_have_shown_their_boot_one_that_shows_none_has_failed)
{
        t.fleet->boot_heard = true;
        test_tick(&t, 1);
        test_after(&t, 120, t.stops, 2);
        ck_assert_uint_eq(test_events(&t, EVENT_BOOT_TIMEOUT), 2);
}

/* Only the process that was started was asked to exit. Nothing shows what the process that it leaves does. */
TEST(what_a_failed_start_leaves_is_kept_while_it_may_run_jobs)
{
        struct worker *worker = test_spawn(&t);

        t.fleet->boot_heard = true;
        t.now = worker_boot_deadline(worker);
        observe_stopped(worker, REASON_BOOT, 0, t.now);
        observe_orphan(worker, 4711, 99, t.now);
        ck_assert(worker_is_unseen(worker) && worker->process.pid == 4711);
        t.now = worker_boot_deadline(worker);
        observe_activity(worker, false, 1, t.now);
        observe_booted(worker, false, t.now);
        ck_assert(!test_stops(&t, worker));
        ck_assert_uint_eq(test_events(&t, EVENT_BOOT_TIMEOUT), 1);
        t.now += 11 * SEC;
        observe_activity(worker, true, 1, t.now);
        t.now += 11 * SEC;
        observe_activity(worker, true, 1, t.now);
        observe_booted(worker, false, t.now);
        ck_assert(test_stops(&t, worker));
}

TEST(a_heartbeat_of_the_generation_shows_that_boots_are_seen)
{
        t.newborn.boot_usec = SEC;
        test_settle(&t);
        ck_assert(t.fleet->boot_heard && !t.fleet->boot_in_proc);
        t.fleet->boot_heard = false;
        /* The settings have changed: what old workers show says nothing about new ones. */
        t.fleet->generation++;
        test_run(&t, 20);
        ck_assert(!t.fleet->boot_heard);
}

TEST(a_late_heartbeat_makes_it_active)
{
        t.newborn.boot_usec = 130 * SEC;
        test_tick(&t, 1);
        test_after(&t, 125, fleet_count(t.fleet, t.now).unseen, 2);
        test_after(&t, 10, fleet_count(t.fleet, t.now).active, 2);
        ck_assert(!test_worker(&t, 1)->process.unseen);
        ck_assert_uint_eq(t.stops, 0);
}

TEST(a_restart_halts_once_no_new_worker_was_seen)
{
        t.newborn.boot_usec = SEC;
        test_settle(&t);
        t.fleet->boot_heard = false;
        t.fleet_settings.restart_surge.value = 1;
        t.newborn.boot_usec = USEC_INFINITY;
        test_restart_to(&t, 119, ROLLOUT_RUNNING);
        test_after(&t, 10, test_rollout(&t), ROLLOUT_HALTED);
        ck_assert_uint_eq(t.quiets + t.stops, 0);
        ck_assert_uint_eq(fleet_count(t.fleet, t.now).active, 2);
        ck_assert_uint_eq(t.starts, 3);
}

TEST(a_restart_does_not_wait_for_old_workers_that_are_not_seen)
{
        test_tick(&t, 1);
        test_run(&t, 130);
        ck_assert_uint_eq(fleet_count(t.fleet, t.now).unseen, 2);
        t.newborn.boot_usec = SEC;
        ck_assert_int_eq(test_restart_out(&t), ROLLOUT_DONE);
        ck_assert_uint_eq(fleet_count(t.fleet, t.now).active, 2);
        ck_assert_uint_eq(fleet_count(t.fleet, t.now).unseen, 2);
        ck_assert_uint_eq(t.stops, 0);
        ck_assert_int_eq(command_stop_worker(test_worker(&t, 1), false, NULL, t.now), COMMAND_KEPT);
        test_after(&t, 10, t.stops, 0);
        command_stop_worker(test_worker(&t, 1), true, NULL, t.now);
        test_after(&t, 10, t.stops, 1);
}

/* RQ: the server has lost the record of a worker that has registered, which it does once. */

static struct worker *spawn_unregistered(void)
{
        struct worker *worker = test_spawn(&t);

        t.fleet_settings.traits = &rq_traits;
        test_process(worker)->silent = true;
        t.now = worker_boot_deadline(worker);
        observe_booted(worker, true, t.now);
        observe_heartbeat_process(worker, worker->process.pid, worker->process.start, t.now);
        observe_elsewhere(worker);
        observe_title(worker, true, 0, false);
        observe_title_elsewhere(worker, 1, t.now);
        return worker;
}

TEST(an_outdated_worker_whose_record_is_lost_is_asked_to_exit)
{
        struct worker *worker = spawn_unregistered();

        command_quiet_worker(worker, NULL, t.now);
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 1);
        ck_assert(worker_title_can_prove(worker));
}

TEST(where_records_are_found_one_that_is_lost_is_replaced)
{
        struct worker *worker = spawn_unregistered();

        ck_assert_uint_eq(test_plans(&t, ACTION_START, NULL), 1);
        ck_assert_int_eq(worker->verdict.retire_reason, REASON_NONE);
        t.fleet->boot_heard = true;
        ck_assert_uint_eq(test_plans(&t, ACTION_START, NULL), 2);
        ck_assert_int_eq(worker->verdict.retire_reason, REASON_BOOT);
        observe_quieted(worker, REASON_BOOT, 0, t.now);
        ck_assert_uint_eq(t.fleet->crash.count, 1);
}

TEST(a_silent_worker_that_registers_once_is_asked_by_its_title)
{
        struct worker *worker = test_spawn_ready(&t);

        t.fleet_settings.traits = &rq_traits;
        command_quiet_worker(worker, NULL, t.now);
        t.now += 600 * SEC;
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 0);
        observe_title(worker, true, 0, false);
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 1);
        test_redis(&t, false);
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 0);
}

TEST_MAIN("unseen", .each = {setup, teardown})
