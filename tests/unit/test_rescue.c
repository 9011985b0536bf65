/* SPDX-License-Identifier: MIT */
/* When a job was cut off by the death of its worker, and what is reported of it. */
#include "frameworks/sidekiq/format.h"
#include "frameworks/solid_queue/solid_queue.h"
#include "golden.h"
#include "model/describe.h"
#include "observe/rescue.h"
#include "quoting.h"
#include "world.h"

static char queue[] = "low", class[] = "Sle\tep", jid[] = "8d42";
static const struct job job = {.queue = queue, .class = class, .jid = jid};

TEST_WORLD(1)
{
}

#define KNOWN(n)  ((struct exit_status){.known = true, .status = n})
#define SIGNAL(n) ((struct exit_status){.known = true, .status = n, .by_signal = true})
#define UNKNOWN   ((struct exit_status){.known = false})

static bool is_due(enum worker_state state, bool killed, struct exit_status exit)
{
        struct worker worker = {.fleet = t.fleet, .state = state, .orders.killed_at = killed};

        return rescue_is_due(&worker, &exit);
}

TEST(a_signal_cuts_jobs_off_and_a_clean_exit_does_not)
{
        ck_assert(is_due(WORKER_ACTIVE, false, SIGNAL(9)));
        ck_assert(is_due(WORKER_QUIET, false, SIGNAL(11)));
        ck_assert(is_due(WORKER_STOPPING, true, SIGNAL(9)));
        ck_assert(is_due(WORKER_ACTIVE, false, KNOWN(1)));
        ck_assert(!is_due(WORKER_ACTIVE, false, KNOWN(0)));
        ck_assert(!is_due(WORKER_STOPPING, false, KNOWN(0)));
        ck_assert(!is_due(WORKER_STOPPING, false, KNOWN(1)));
}

TEST(a_work_list_is_gone_a_minute_after_the_last_heartbeat)
{
        struct worker worker = {.fleet = t.fleet, .heartbeat.busy = 1, .heartbeat.changed_at = USEC_PER_SEC};

        ck_assert(rescue_is_late(&worker, USEC_PER_SEC + RESCUE_USEC));
        ck_assert(!rescue_is_late(&worker, USEC_PER_SEC + RESCUE_USEC - 1));
        worker.heartbeat.busy = 0;
        ck_assert(!rescue_is_late(&worker, USEC_PER_SEC + RESCUE_USEC));
}

TEST(how_it_ended_unknown_only_one_that_was_not_reported_to_exit_was_cut_off)
{
        ck_assert(is_due(WORKER_ACTIVE, false, UNKNOWN));
        ck_assert(is_due(WORKER_QUIET, false, UNKNOWN));
        ck_assert(!is_due(WORKER_STOPPING, false, UNKNOWN));
        ck_assert(is_due(WORKER_STOPPING, true, UNKNOWN));
}

TEST(each_job_is_reported_of_with_what_became_of_it)
{
        const struct worker *worker = test_spawn(&t);
        const struct exit_status exit = SIGNAL(9);
        const char *how = EXIT_STATUS_TEXT(&exit);

        rescue_observe(worker, &job, RESCUE_LEFT, 0, how);
        ck_assert_uint_eq(test_events(&t, EVENT_JOB_LOST), 0);
        rescue_observe(worker, &job, RESCUE_LOST, 0, how);
        ck_assert_uint_eq(test_event(&t, EVENT_JOB_LOST)->index, worker->index);
        rescue_observe(worker, &job, RESCUE_REQUEUED, 1, how);
        rescue_observe(worker, &job, RESCUE_REQUEUED, 2, how);
        ck_assert_uint_eq(test_events(&t, EVENT_JOB_RESCUED), 2);
        rescue_observe(worker, &job, RESCUE_PARKED, 0, how);
        ck_assert_uint_eq(test_events(&t, EVENT_JOB_PARKED), 1);
        rescue_observe_failed(worker, ERROR_REPORT("it refuses the command"));
        rescue_observe_unknown(worker, &(struct job_list){.n_unreadable = 1});
        ck_assert_uint_eq(test_events(&t, EVENT_RESCUE_FAILED), 2);
}

TEST(jobs_too_large_to_be_read_are_reported)
{
        const struct worker *worker = test_spawn(&t);

        rescue_observe_unknown(worker, &(struct job_list){.n_jobs = 3});
        ck_assert_uint_eq(test_events(&t, EVENT_RESCUE_FAILED), 0);
        rescue_observe_unknown(worker, &(struct job_list){.n_oversized = 1});
        ck_assert_uint_eq(test_events(&t, EVENT_RESCUE_FAILED), 1);
        rescue_observe_unknown(worker, &(struct job_list){.n_oversized = 2, .n_unreadable = 1});
        ck_assert_uint_eq(test_events(&t, EVENT_RESCUE_FAILED), 3);
}

TEST(claims_in_a_database_stay_however_their_process_ended)
{
        struct worker worker = {.fleet = t.fleet, .heartbeat.busy = 1, .heartbeat.changed_at = USEC_PER_SEC};

        t.fleet_settings.traits = &solid_queue_traits;
        /* With status 1, shutdown_timeout ran out before the claims were released; with 0, the database was
         * away. */
        ck_assert(is_due(WORKER_STOPPING, false, KNOWN(1)));
        ck_assert(is_due(WORKER_STOPPING, false, KNOWN(0)));
        ck_assert(is_due(WORKER_QUIET, false, UNKNOWN));
        ck_assert(!rescue_is_late(&worker, USEC_PER_SEC + RESCUE_USEC));
}

TEST(claims_are_put_back_once_the_database_is_there_again)
{
        const usec_t died_at = 1000 * USEC_PER_SEC, later = died_at + 2 * USEC_PER_HOUR;

        t.fleet->redis_up = true;
        t.fleet->redis_at = 1;
        ck_assert(rescue_is_repeated(t.fleet, died_at, died_at + RESCUE_USEC - 1));
        t.fleet->redis_up = false;
        ck_assert(!rescue_is_repeated(t.fleet, died_at, died_at + RESCUE_USEC));
        t.fleet_settings.traits = &solid_queue_traits;
        ck_assert(rescue_is_repeated(t.fleet, died_at, later));
        t.fleet->redis_up = true;
        t.fleet->redis_at = later;
        ck_assert(rescue_is_repeated(t.fleet, died_at, later + RESCUE_USEC - 1));
        ck_assert(!rescue_is_repeated(t.fleet, died_at, later + RESCUE_USEC));
        t.fleet->redis_up = false;
        ck_assert(!rescue_is_repeated(t.fleet, died_at, died_at + RESCUE_STAY_USEC));
}

TEST(what_becomes_of_a_job_in_a_database)
{
        const struct worker *worker = test_spawn(&t);

        t.fleet_settings.traits = &solid_queue_traits;
        golden_begin();
        rescue_observe(worker, &job, RESCUE_REQUEUED, 1, "died");
        golden_add("requeued", test_event(&t, EVENT_JOB_RESCUED)->text);
        rescue_observe(worker, &job, RESCUE_PARKED, 0, "died");
        golden_add("put back too often", test_event(&t, EVENT_JOB_PARKED)->text);
        struct worker dead = *worker;
        dead.orders.quiet_at = 1;
        rescue_observe_abandoned(&dead, &KNOWN(1), 2, 0, 1 + 5 * USEC_PER_SEC);
        golden_add("abandoned", test_event(&t, EVENT_DRAIN_ABANDONED)->text);
        rescue_observe_abandoned(&dead, &UNKNOWN, 1, 2, 1 + 5 * USEC_PER_SEC);
        golden_add("released", test_event(&t, EVENT_DRAIN_ABANDONED)->text);
        rescue_observe_failed(worker, ERROR_REPORT("permission denied"));
        golden_add("refused", test_event(&t, EVENT_RESCUE_FAILED)->text);
        golden_end("describe", "jobs of a dead worker of Solid Queue");
}

TEST(a_worker_that_does_not_wait_for_its_jobs_is_reported)
{
        struct worker dead = *test_spawn(&t);
        const struct exit_status clean = KNOWN(1), killed = SIGNAL(9), unknown = UNKNOWN;
        const usec_t asked_at = 100 * USEC_PER_SEC, died_at = 105 * USEC_PER_SEC;

        t.fleet_settings.traits = &solid_queue_traits;
        rescue_observe_abandoned(&dead, &clean, 2, 1, died_at);
        dead.orders.quiet_at = asked_at;
        rescue_observe_abandoned(&dead, &killed, 2, 0, died_at);
        rescue_observe_abandoned(&dead, &unknown, 2, 0, died_at);
        rescue_observe_abandoned(&dead, &clean, 0, 0, died_at);
        dead.orders.killed_at = asked_at + 1;
        rescue_observe_abandoned(&dead, &clean, 2, 1, died_at);
        dead.orders.killed_at = 0;
        ck_assert_uint_eq(test_events(&t, EVENT_DRAIN_ABANDONED), 0);
        rescue_observe_abandoned(&dead, &clean, 2, 0, died_at + 1);
        rescue_observe_abandoned(&dead, &clean, 0, 1, died_at);
        ck_assert_uint_eq(test_events(&t, EVENT_DRAIN_ABANDONED), 2);
        ck_assert_uint_eq(t.fleet->abandoned.jobs, 3);
        ck_assert_uint_eq(t.fleet->abandoned.released, 1);
        ck_assert_uint_eq(t.fleet->abandoned.after, died_at - asked_at);
        /* A killed worker releases nothing: released jobs count, left ones do not. */
        rescue_observe_abandoned(&dead, &unknown, 2, 4, died_at);
        ck_assert_uint_eq(t.fleet->abandoned.jobs, 7);
        t.fleet_settings.traits = &sidekiq_traits;
        rescue_observe_abandoned(&dead, &clean, 2, 1, died_at);
        ck_assert_uint_eq(test_events(&t, EVENT_DRAIN_ABANDONED), 3);
}

TEST(private_queues_are_reported_of_once)
{
        const struct worker *worker = test_spawn(&t);

        rescue_observe(worker, &job, RESCUE_PRIVATE, 0, "died");
        rescue_observe(worker, &job, RESCUE_PRIVATE, 0, "died");
        ck_assert_uint_eq(test_events(&t, EVENT_RESCUE_OFF), 1);
}

TEST_MAIN("rescue", .each = {setup, teardown})
