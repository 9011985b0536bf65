/* SPDX-License-Identifier: MIT */
/* What counts as evidence: idle proof, freshness, clock jumps, states, signals. */
/* promises: P1 P2 P5 P9 */
#include "decide/command.h"
#include "frameworks/solid_queue/solid_queue.h"
#include "model/deadlines.h"
#include "model/describe.h"
#include "model/idle_proof.h"
#include "model/rollout.h"
#include "model/world.h"
#include "observe/observe.h"
#include "world.h"

TEST_WORLD(2)
{
}

/* Whether it is asked to exit after another heartbeat that says that it is quiet. */
static bool stops_after(struct worker *worker, double sent_at, unsigned busy)
{
        test_heartbeat(&t, worker, sent_at, busy, true);
        return test_stops(&t, worker);
}

TEST(a_command_that_goes_to_the_background_leaves_its_worker_behind)
{
        struct worker *worker = test_spawn(&t);

        observe_orphan(worker, 4711, 99, t.now);
        ck_assert_int_eq(worker->process.pid, 4711);
        ck_assert_uint_eq(worker->process.start, 99);
        ck_assert_int_eq(worker->state, WORKER_STARTING);
        ck_assert_uint_eq(test_events(&t, EVENT_STARTED), 2);
}

/* Heartbeats of a quieted worker, and whether the last of them is the proof. */
static const struct {
        struct {
                double sent_at;
                unsigned busy;
                bool denies; /* does not say that it is quiet */
        } heartbeats[4];
        bool proves;
} proofs[] = {
        {{{115, 0, false}}, false},
        {{{115, 0, false}, {120, 0, false}}, true},
        /* Read twice, a heartbeat counts once. */
        {{{115, 0, false}, {115, 0, false}, {115, 0, false}, {115, 0, false}}, false},
        /* A job starts the proof over. */
        {{{115, 0, false}, {120, 1, false}, {125, 0, false}}, false},
        {{{115, 0, false}, {120, 1, false}, {125, 0, false}, {130, 0, false}}, true},
        /* One that is not quiet, too, and an older one. */
        {{{115, 0, false}, {120, 0, true}, {125, 0, false}}, false},
        {{{115, 0, false}, {112, 0, false}, {120, 0, false}}, false},
        {{{115, 0, false}, {112, 0, false}, {120, 0, false}, {125, 0, false}}, true},
};

TEST_LOOP(two_idle_heartbeats_in_a_row_are_the_proof, ELEMENTSOF(proofs))
{
        struct worker *worker = test_spawn_quiet(&t);

        for (size_t i = 0; i < ELEMENTSOF(proofs[_i].heartbeats) && proofs[_i].heartbeats[i].sent_at > 0;
             i++) {
                unsigned busy = proofs[_i].heartbeats[i].busy;

                ck_assert(!test_stops(&t, worker));
                ck_assert_int_eq(worker->verdict.waits_for,
                                 worker->heartbeat.busy > 0 ? WAIT_JOBS : WAIT_HEARTBEATS);
                ck_assert(worker->heartbeat.busy > 0 ||
                          worker->verdict.waits_count == 2 - worker->heartbeat.idle_count);
                test_heartbeat(&t, worker, proofs[_i].heartbeats[i].sent_at, busy,
                               !proofs[_i].heartbeats[i].denies);
        }
        ck_assert(test_stops(&t, worker) == proofs[_i].proves);
}

static const struct job_list *some_jobs(size_t n)
{
        static struct job jobs[3];
        static struct job_list list = {.jobs = jobs};

        for (size_t i = 0; i < n; i++)
                jobs[i].class = (char *)"HardJob";
        list.n_jobs = n;
        return &list;
}

TEST(the_oldest_job_is_reported_of_one_that_drains_while_it_can_be_running)
{
        struct worker *worker = test_spawn_ready(&t);

        test_heartbeat(&t, worker, 112, 3, false);
        observe_jobs(worker, some_jobs(3), 5 * USEC_PER_MIN, t.now);
        /* Its next job may be another. */
        ck_assert_uint_eq(worker_oldest_job_usec(worker, t.now), 0);
        observe_quieted(worker, REASON_OPERATOR, 0, t.now);
        ck_assert_uint_eq(worker_oldest_job_usec(worker, t.now + USEC_PER_SEC),
                          5 * USEC_PER_MIN + USEC_PER_SEC);
        test_plan(&t);
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_JOBS);
        ck_assert_uint_eq(worker->heartbeat.busy, 3);
        /* The oldest may be the one that ended. */
        test_heartbeat(&t, worker, 115, 2, true);
        ck_assert_uint_eq(worker_oldest_job_usec(worker, t.now), 0);
        test_plan(&t);
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_JOBS);
        ck_assert_uint_eq(worker->heartbeat.busy, 2);
        test_heartbeat(&t, worker, 120, 1, true);
        observe_jobs(worker, some_jobs(1), 61500 * USEC_PER_MSEC, t.now);
        test_plan(&t);
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_JOBS);
        ck_assert_uint_eq(worker->heartbeat.busy, 1);
        observe_jobs(worker, some_jobs(1), 0, t.now);
        ck_assert_uint_eq(worker_oldest_job_usec(worker, t.now), 0);
        /* A job from before a suspend may be older than the machine's clock without it. */
        observe_jobs(worker, some_jobs(1), USEC_PER_DAY, t.now);
        ck_assert_uint_gt(worker_oldest_job_usec(worker, t.now), 0);
        observe_heartbeat_process(worker, 4711, 99, t.now);
        ck_assert_uint_eq(worker_oldest_job_usec(worker, t.now), 0);
}

TEST(a_heartbeat_that_is_answered_again_is_no_sign_of_life)
{
        struct worker *worker = test_spawn_ready(&t);

        test_heartbeat(&t, worker, 115, 0, false);
        test_heartbeat(&t, worker, 120, 0, false);
        usec_t changed_at = t.now;
        for (unsigned i = 0; i < 3; i++) {
                t.now += 5 * USEC_PER_SEC;
                test_heartbeat(&t, worker, 115, 0, false);
                test_heartbeat(&t, worker, 120, 0, false);
                ck_assert_uint_eq(worker->heartbeat.changed_at, changed_at);
        }
        test_heartbeat(&t, worker, 125, 0, false);
        ck_assert_uint_eq(worker->heartbeat.changed_at, t.now);

        /* The clock of the worker went back, and sqmgr has not observed the step. */
        t.now += 5 * USEC_PER_MIN;
        test_heartbeat(&t, worker, 50, 0, false);
        test_heartbeat(&t, worker, 55, 0, false);
        ck_assert_uint_eq(worker->heartbeat.changed_at, t.now);
}

/* The worker hangs. Readers are connected to a replica that lags, and later to the first server again. */
TEST(a_replica_that_lags_makes_no_hung_worker_send_heartbeats)
{
        struct worker *worker = test_spawn_ready(&t);

        test_heartbeat(&t, worker, 115, 0, false);
        usec_t changed_at = t.now;
        for (unsigned i = 0; i < 3; i++) {
                t.now += 5 * USEC_PER_MIN;
                test_heartbeat(&t, worker, 110, 0, false);
                t.now += (i + 1) * USEC_PER_MIN;
                test_heartbeat(&t, worker, 115, 0, false);
                ck_assert_uint_eq(worker->heartbeat.changed_at, changed_at);
        }
}

/* Until it has sent a heartbeat that this sqmgr has not found. */
TEST(after_an_adoption_an_older_heartbeat_is_no_sign_of_life)
{
        struct worker *worker = test_spawn_ready(&t);

        worker->heartbeat.newest_at = 0;
        test_heartbeat(&t, worker, 110, 0, false);
        usec_t changed_at = worker->heartbeat.changed_at;
        for (unsigned i = 0; i < 3; i++) {
                t.now += 5 * USEC_PER_SEC;
                test_heartbeat(&t, worker, 90 + 5 * i, 0, false);
                ck_assert_uint_eq(worker->heartbeat.changed_at, changed_at);
        }
}

TEST(a_database_shows_the_jobs_as_they_are_beside_an_old_heartbeat)
{
        struct worker *worker = test_spawn_ready(&t);
        usec_t changed_at = worker->heartbeat.changed_at;

        t.now += 5 * USEC_PER_SEC;
        test_heartbeat(&t, worker, 110, 2, false);
        ck_assert_uint_eq(worker->heartbeat.busy, 0);
        t.fleet_settings.traits = &solid_queue_traits;
        test_heartbeat(&t, worker, 110, 2, false);
        ck_assert_uint_eq(worker->heartbeat.busy, 2);
        ck_assert_uint_eq(worker->deaf.took_at, t.now);
        ck_assert_uint_eq(worker->heartbeat.changed_at, changed_at);
        /* A heartbeat that was read over the connection before proves nothing. */
        test_redis(&t, false);
        t.now += 5 * USEC_PER_SEC;
        test_redis(&t, true);
        test_heartbeat(&t, worker, 110, 0, false);
        ck_assert_uint_eq(worker->heartbeat.busy, 2);
}

/* sqmgr has ended while it sent the stop signal. No heartbeat shows whether the worker got it. */
TEST(heartbeats_that_hide_an_order_do_not_deny_it)
{
        struct worker *worker = test_spawn_quiet(&t);

        t.fleet_settings.traits = &solid_queue_traits;
        worker->orders.unconfirmed = true;
        for (unsigned i = 0; i < 5; i++) {
                t.now += 5 * USEC_PER_SEC;
                test_heartbeat(&t, worker, 115 + 5 * i, 1, false);
        }
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        ck_assert(worker->orders.unconfirmed);
}

TEST(after_a_clock_step_a_record_from_before_it_does_not_outdate_new_ones)
{
        struct worker *worker = test_spawn_ready(&t);

        test_heartbeat(&t, worker, 115, 0, false);
        t.world->doubt.stepped_back_at = t.now;
        usec_t changed_at = worker->heartbeat.changed_at;
        t.now += 5 * USEC_PER_SEC;
        /* The heartbeat that was known before the older one is no change either. */
        for (unsigned i = 0; i < 3; i++)
                test_heartbeat(&t, worker, i % 2 == 0 ? 50 : 115, 0, false);
        ck_assert_uint_eq(worker->heartbeat.changed_at, changed_at);
        /* A replica has the record that was written before the step. */
        t.now += 46 * USEC_PER_SEC;
        test_heartbeat(&t, worker, 115, 0, false);
        for (unsigned i = 0; i < 3; i++) {
                t.now += 5 * USEC_PER_SEC;
                test_heartbeat(&t, worker, 100 + i, 0, false);
        }
        ck_assert_uint_eq(worker->heartbeat.changed_at, t.now);
}

/* The step was while no sqmgr ran. The first heartbeat that is read is from before it, as a replica lags. */
TEST(a_heartbeat_from_the_future_does_not_outdate_those_after_a_clock_step)
{
        struct worker *worker = test_spawn_ready(&t);
        double now = (double)t.now / 1e6;

        t.world->doubt.due = t.now + USEC_PER_SEC;
        test_heartbeat(&t, worker, now + 3600, 0, false);
        t.now += 5 * USEC_PER_SEC;
        test_heartbeat(&t, worker, now + 5, 0, false);
        t.now += 5 * USEC_PER_SEC;
        test_heartbeat(&t, worker, now + 10, 0, false);
        ck_assert_uint_eq(worker->heartbeat.changed_at, t.now);
        /* An older one is old again. */
        t.now += 5 * USEC_PER_SEC;
        test_heartbeat(&t, worker, now + 5, 0, false);
        test_heartbeat(&t, worker, now + 10, 0, false);
        ck_assert_uint_ne(worker->heartbeat.changed_at, t.now);
}

TEST(a_late_answer_is_as_old_as_its_question)
{
        struct worker *worker = test_spawn_ready(&t);
        struct heartbeat heartbeat = {.sent_usec = 115 * USEC_PER_SEC};

        t.now += 2 * USEC_PER_MIN;
        heartbeat.asked_at = t.now - USEC_PER_MIN;
        observe_heartbeat(worker, &heartbeat, t.now);
        ck_assert_uint_eq(worker->heartbeat.changed_at, heartbeat.asked_at);
        ck_assert(!worker_fresh(worker, t.now));
}

TEST(outcomes_are_those_of_the_newest_heartbeat)
{
        struct worker *worker = test_spawn_ready(&t);
        struct heartbeat heartbeat = {.sent_usec = 115 * USEC_PER_SEC,
                                      .outcomes = {.known = true, .processed = 20, .failed = 7}};

        observe_heartbeat(worker, &heartbeat, t.now);
        ck_assert_uint_eq(worker->outcomes.processed, 20);
        /* The counts may be written after the rest of the heartbeat. */
        heartbeat.outcomes.processed = 21;
        observe_heartbeat(worker, &heartbeat, t.now);
        ck_assert_uint_eq(worker->outcomes.processed, 21);
        /* A replica that lags repeats an old heartbeat. */
        heartbeat.sent_usec -= USEC_PER_SEC;
        heartbeat.outcomes.processed = 19;
        observe_heartbeat(worker, &heartbeat, t.now);
        ck_assert_uint_eq(worker->outcomes.processed, 21);
        /* Another process counts from zero, or not at all. */
        heartbeat.sent_usec += 5 * USEC_PER_SEC;
        heartbeat.outcomes = (struct worker_outcomes){.known = true};
        observe_heartbeat(worker, &heartbeat, t.now);
        ck_assert(worker->outcomes.known && worker->outcomes.processed == 0);
        heartbeat.outcomes.known = false;
        observe_heartbeat(worker, &heartbeat, t.now);
        ck_assert(!worker->outcomes.known);
        /* Together, these reports show that one job has ended. */
        ck_assert_uint_eq(t.fleet->work.ended[1], 1);
}

TEST(a_heartbeat_from_before_the_quiet_proves_nothing)
{
        struct worker *worker = test_spawn_ready(&t);

        test_heartbeat(&t, worker, 115, 0, false);
        observe_quieted(worker, REASON_OPERATOR, 0, t.now);
        ck_assert(!stops_after(worker, 120, 0));
}

TEST(a_work_list_that_is_not_empty_holds)
{
        struct worker *worker = test_spawn_quiet(&t);
        struct heartbeat heartbeat = {.quiet = true, .work_list_known = true};

        for (unsigned i = 0; i < 6; i++) {
                heartbeat.sent_usec = (115 + i) * USEC_PER_SEC;
                observe_heartbeat(worker, &heartbeat, t.now);
                ck_assert(!test_stops(&t, worker));
                ck_assert_int_eq(worker->verdict.waits_for, WAIT_HEARTBEATS);
                ck_assert_uint_eq(worker->verdict.waits_count, 1);
        }
        heartbeat.work_list_empty = true;
        observe_heartbeat(worker, &heartbeat, t.now);
        ck_assert(test_stops(&t, worker));
}

TEST(a_work_list_read_at_an_earlier_heartbeat_proves_nothing)
{
        struct worker *worker = test_spawn_quiet(&t);
        struct heartbeat heartbeat = {.sent_usec = 120 * USEC_PER_SEC, .quiet = true};

        test_heartbeat(&t, worker, 115, 0, true);
        observe_heartbeat(worker, &heartbeat, t.now);
        ck_assert(!test_stops(&t, worker));
        heartbeat.work_list_known = heartbeat.work_list_empty = true;
        observe_heartbeat(worker, &heartbeat, t.now);
        ck_assert(test_stops(&t, worker));
}

TEST(job_threads_hold_the_proof_for_two_more_heartbeats)
{
        struct worker *worker = test_spawn_ready(&t);

        observe_threads(worker, 5);
        observe_quieted(worker, REASON_OPERATOR, 0, t.now);
        observe_threads(worker, 1);
        test_heartbeat(&t, worker, 115, 0, true);
        ck_assert(!stops_after(worker, 120, 0));
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_THREADS);
        ck_assert_uint_eq(worker->verdict.waits_count, 2);
        ck_assert(!stops_after(worker, 125, 0));
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_THREADS);
        ck_assert_uint_eq(worker->verdict.waits_count, 1);
        ck_assert(stops_after(worker, 130, 0));
}

TEST(threads_gone_prove_with_two_heartbeats)
{
        struct worker *worker = test_spawn_ready(&t);

        observe_threads(worker, 5);
        observe_quieted(worker, REASON_OPERATOR, 0, t.now);
        observe_threads(worker, 0);
        ck_assert(!stops_after(worker, 115, 0));
        ck_assert(stops_after(worker, 120, 0));
}

TEST(threads_never_seen_while_active_do_not_hold)
{
        struct worker *worker = test_spawn_quiet(&t);

        observe_threads(worker, 5);
        test_heartbeat(&t, worker, 115, 0, true);
        ck_assert(stops_after(worker, 120, 0));
}

TEST(another_process_starts_the_proof_over)
{
        struct worker *worker = test_spawn_quiet(&t);

        test_heartbeat(&t, worker, 115, 0, true);
        observe_heartbeat_process(worker, 999, 1, t.now);
        ck_assert(!stops_after(worker, 120, 0));
}

TEST(a_proof_needs_redis_and_a_fresh_heartbeat_after_it_is_back)
{
        struct worker *worker = test_spawn_quiet(&t);

        test_heartbeat(&t, worker, 115, 0, true);
        test_heartbeat(&t, worker, 120, 0, true);
        t.now += USEC_PER_SEC;
        test_redis(&t, false);
        ck_assert(!test_stops(&t, worker));
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_REDIS);
        t.now += USEC_PER_SEC;
        test_redis(&t, true);
        ck_assert(!test_stops(&t, worker));
        ck_assert(!stops_after(worker, 120, 0));
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_FRESH_HEARTBEAT);
        ck_assert(stops_after(worker, 125, 0));
}

TEST(the_first_reading_after_redis_is_back_is_only_a_mark)
{
        struct worker *worker = test_spawn_quiet(&t);

        test_heartbeat(&t, worker, 115, 0, true);
        t.now += USEC_PER_SEC;
        test_redis(&t, false);
        test_redis(&t, true);
        ck_assert(!stops_after(worker, 120, 0));
        ck_assert(!worker_fresh(worker, t.now));
        ck_assert(stops_after(worker, 125, 0));
}

TEST(a_busy_mark_starts_the_proof_over)
{
        struct worker *worker = test_spawn_quiet(&t);

        test_heartbeat(&t, worker, 115, 0, true);
        t.now += USEC_PER_SEC;
        test_redis(&t, false);
        test_redis(&t, true);
        test_heartbeat(&t, worker, 120, 1, true);
        ck_assert(!stops_after(worker, 125, 0));
        ck_assert(stops_after(worker, 130, 0));
}

/* A quiet worker that is idle stays idle: its baseline, however old, is the first heartbeat of the proof. */
TEST(after_an_adoption_the_first_heartbeat_counts_for_the_proof_of_a_quiet_worker)
{
        struct worker *worker = test_spawn_quiet(&t);

        worker->heartbeat.newest_at = 0;
        ck_assert(!stops_after(worker, 110, 0));
        ck_assert_uint_eq(worker->verdict.waits_count, 1);
        ck_assert(!stops_after(worker, 110, 0));
        t.now += 5 * USEC_PER_SEC;
        ck_assert(stops_after(worker, 115, 0));
}

/* Neither a job that runs nor an answer of a replica that lags counts. */
TEST(after_an_adoption_no_job_and_no_older_heartbeat_counts_for_the_proof)
{
        struct worker *worker = test_spawn_quiet(&t);

        worker->heartbeat.newest_at = 0;
        ck_assert(!stops_after(worker, 105, 0));
        ck_assert_uint_eq(worker->heartbeat.idle_count, 0);
        worker->heartbeat.newest_at = 0;
        ck_assert(!stops_after(worker, 110, 1));
        ck_assert_uint_eq(worker->heartbeat.idle_count, 0);
        t.now += 5 * USEC_PER_SEC;
        ck_assert(!stops_after(worker, 115, 0));
        ck_assert(stops_after(worker, 120, 0));
}

/* Clock jumps and suspends */

static void clocks(usec_t monotonic, usec_t slept, int64_t stepped, bool doubtful)
{
        usec_t real = (usec_t)((int64_t)(monotonic + slept) + stepped);

        ck_assert(observe_clocks(t.world, monotonic, monotonic + slept, real) == doubtful);
}

TEST(the_first_tick_is_trusted)
{
        clocks(t.now, 99 * USEC_PER_HOUR, 0, false);
        ck_assert_uint_eq(t.world->doubt.since, 0);
}

/* Two further ticks: how many seconds later, by clocks that have slept or were stepped, and their doubts. */
static const struct {
        unsigned interval, slept;
        struct {
                unsigned after;
                int stepped;
                bool doubtful;
        } ticks[2];
} doubts[] = {
        {5, 20, {{1, -20, true}, {1, -20, false}}},  /* a suspend */
        {5, 0, {{1, -3600, true}, {1, 3600, true}}}, /* a step either way */
        {5, 0, {{15, 0, false}, {15, 0, true}}},     /* a stall past twice the interval */
        {1, 0, {{6, 0, false}, {6, 0, true}}},       /* and past five seconds at least */
};

TEST_LOOP(a_suspend_a_step_and_a_stall_are_doubtful, ELEMENTSOF(doubts))
{
        unsigned n = 0;

        t.settings.check_interval = doubts[_i].interval * USEC_PER_SEC;
        clocks(t.now, 0, 0, false);
        FOREACH_ELEMENT(tick, doubts[_i].ticks) {
                t.now += tick->after * USEC_PER_SEC + (tick->doubtful ? 1 : 0);
                clocks(t.now, doubts[_i].slept * USEC_PER_SEC, tick->stepped * (int64_t)USEC_PER_SEC,
                       tick->doubtful);
                n += tick->doubtful;
        }
        ck_assert_uint_eq(test_events(&t, EVENT_TIME_DOUBT), n);
}

TEST(after_a_doubt_a_proof_needs_a_fresh_heartbeat)
{
        struct worker *worker = test_spawn_quiet(&t);

        test_heartbeat(&t, worker, 115, 0, true);
        test_heartbeat(&t, worker, 120, 0, true);
        clocks(t.now, 0, 0, false);
        t.now += USEC_PER_SEC;
        clocks(t.now, 60 * USEC_PER_SEC, 0, true);
        ck_assert(!test_stops(&t, worker));
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_FRESH_HEARTBEAT);
        t.now += USEC_PER_SEC;
        test_heartbeat(&t, worker, 125, 0, true);
        ck_assert_msg(!test_stops(&t, worker), "what was read first may be from before the doubt");
        ck_assert(stops_after(worker, 130, 0));
}

/* States */

TEST(a_worker_quieted_by_someone_else_is_seen)
{
        struct worker *worker = test_spawn_ready(&t);

        test_heartbeat(&t, worker, 115, 2, true);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        ck_assert_int_eq(worker->reason, REASON_EXTERNAL);
        ck_assert_int_eq(test_event(&t, EVENT_QUIET)->reason, REASON_EXTERNAL);
        ck_assert_uint_eq(test_plans(&t, ACTION_START, NULL), 2);
        ck_assert_uint_eq(test_planned(&t, ACTION_STOP, NULL), 0);
}

TEST(a_worker_quiet_at_its_first_heartbeat_was_quieted_by_someone_else)
{
        struct worker *worker = test_spawn(&t);

        test_heartbeat(&t, worker, 100, 0, true);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        ck_assert_int_eq(worker->reason, REASON_EXTERNAL);
        ck_assert(!test_stops(&t, worker));
        ck_assert(stops_after(worker, 105, 0));
}

TEST(a_lost_quiet_signal_is_sent_again)
{
        struct worker *worker = test_spawn_quiet(&t);

        for (unsigned i = 0; i < 3; i++) {
                ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 0);
                test_heartbeat(&t, worker, 115 + 5 * i, 1, false);
        }
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 1);
        test_execute(&t);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 0);
}

TEST(a_stale_worker_is_reported_of_once_and_again_when_it_heartbeats)
{
        struct worker *worker = test_spawn_ready(&t);

        t.now += 41 * USEC_PER_SEC;
        observe_time(t.world, t.now);
        observe_time(t.world, t.now);
        ck_assert_uint_eq(test_events(&t, EVENT_STALE), 1);
        test_plan(&t);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert(!worker_ready(worker, t.now));
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_STALE);
        test_heartbeat(&t, worker, 160, 0, false);
        ck_assert_uint_eq(test_events(&t, EVENT_BEATS_AGAIN), 1);
        ck_assert(worker_ready(worker, t.now));
}

TEST(silence_while_redis_is_away_is_not_stale)
{
        test_spawn_ready(&t);
        test_redis(&t, false);
        t.now += USEC_PER_HOUR;
        observe_time(t.world, t.now);
        test_redis(&t, true);
        observe_time(t.world, t.now);
        ck_assert_uint_eq(test_events(&t, EVENT_STALE), 0);
}

TEST(redis_going_and_coming_is_reported)
{
        ck_assert_uint_eq(test_events(&t, EVENT_REDIS_UP), 0);
        test_redis(&t, true);
        test_redis(&t, false);
        test_redis(&t, false);
        ck_assert_uint_eq(test_events(&t, EVENT_REDIS_DOWN), 1);
        test_redis(&t, true);
        ck_assert_uint_eq(test_events(&t, EVENT_REDIS_UP), 1);
}

TEST(a_database_going_and_coming_is_reported_as_such)
{
        t.fleet_settings.traits = &solid_queue_traits;
        test_redis(&t, false);
        ck_assert_uint_eq(test_events(&t, EVENT_DATABASE_DOWN), 1);
        test_redis(&t, true);
        ck_assert_uint_eq(test_events(&t, EVENT_DATABASE_UP), 1);
        ck_assert_uint_eq(test_events(&t, EVENT_REDIS_DOWN) + test_events(&t, EVENT_REDIS_UP), 0);
}

TEST(a_wrapper_whose_beating_process_is_gone_boots_anew)
{
        struct worker *worker = test_spawn_ready(&t);

        observe_heartbeat_process(worker, 555, 1, t.now);
        test_heartbeat(&t, worker, 115, 3, false);
        ck_assert_uint_eq(test_counts(&t).busy, 3);
        observe_heartbeat_process(worker, 0, 0, t.now);
        ck_assert_int_eq(worker->state, WORKER_STARTING);
        ck_assert(!worker->heartbeat.seen);
        /* Its jobs have ended with it. */
        ck_assert_uint_eq(test_counts(&t).busy, 0);
        ck_assert_uint_eq(test_events(&t, EVENT_CRASHED), 1);
        observe_heartbeat_process(worker, 556, 2, t.now);
        test_heartbeat(&t, worker, 50, 0, false);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert(!worker_ready(worker, t.now));
}

TEST(a_wrapper_whose_beating_process_stays_gone_is_ended_after_boot_timeout)
{
        struct worker *worker = test_spawn_ready(&t);

        observe_heartbeat_process(worker, 555, 1, t.now);
        observe_heartbeat_process(worker, 0, 0, t.now);
        t.now += 119 * USEC_PER_SEC;
        observe_booted(worker, false, t.now);
        ck_assert(!test_stops(&t, worker));
        t.now += USEC_PER_SEC;
        ck_assert(!test_stops(&t, worker));
        observe_booted(worker, false, t.now);
        ck_assert(test_stops(&t, worker));
}

TEST(a_quiet_wrapper_whose_beating_process_is_gone_is_stopped)
{
        struct worker *worker = test_spawn_quiet(&t);

        observe_heartbeat_process(worker, 555, 1, t.now);
        ck_assert(!stops_after(worker, 115, 3));
        observe_heartbeat_process(worker, 0, 0, t.now);
        ck_assert(!test_stops(&t, worker)); /* it is not known what is left */
        ck_assert_uint_eq(worker_poll_items(worker, false, t.now), POLL_HEARTBEAT | POLL_BOOT | POLL_MEMORY);
        observe_booted(worker, true, t.now);
        ck_assert(!test_stops(&t, worker));
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_SUCCESSOR);
        observe_booted(worker, false, t.now); /* that has ended */
        ck_assert(test_stops(&t, worker));
        test_redis(&t, false);
        ck_assert(!test_stops(&t, worker));
}

TEST(a_wrapper_whose_process_dies_late_does_not_fail_a_release)
{
        struct worker *worker = test_spawn_ready(&t);

        command_restart(t.fleet, NULL, t.now);
        worker->generation = t.fleet->generation;
        t.now += USEC_PER_HOUR;
        test_heartbeat(&t, worker, 4000, 0, false);
        observe_heartbeat_process(worker, 0, 0, t.now);
        ck_assert_uint_eq(t.fleet->rollout.failures, 0);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
}

TEST(a_wrapper_that_follows_its_process_is_one_crash)
{
        const struct exit_status exited = {.known = true, .status = 1};
        struct worker *worker = test_spawn_ready(&t);

        observe_heartbeat_process(worker, 555, 1, worker->active_at);
        t.now = worker->active_at + 9 * USEC_PER_SEC;
        observe_heartbeat_process(worker, 0, 0, t.now);
        observe_exit(worker, &exited, t.now);
        ck_assert_uint_eq(t.fleet->crash.count, 1);
        ck_assert_uint_eq(worker->last_uptime, 9 * USEC_PER_SEC);

        backoff_reset(&t.fleet->crash);
        worker = test_spawn_ready(&t);
        observe_heartbeat_process(worker, 556, 1, worker->active_at);
        t.now = worker->active_at + USEC_PER_HOUR;
        observe_heartbeat_process(worker, 0, 0, t.now);
        observe_exit(worker, &exited, t.now);
        ck_assert_uint_eq(t.fleet->crash.count, 0);
}

TEST(the_process_that_heartbeats_outlives_its_wrapper)
{
        struct worker *worker = test_spawn_ready(&t);

        observe_heartbeat_process(worker, 555, 77, t.now);
        observe_promoted(worker);
        ck_assert_int_eq(worker->process.pid, 555);
        ck_assert_uint_eq(worker->process.start, 77);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
}

/* Signals */

static void plan_and_execute(void)
{
        test_plan(&t);
        test_execute(&t);
}

TEST(a_refused_signal_is_reported_once_and_changes_no_state)
{
        struct worker *worker = test_spawn_ready(&t);

        command_quiet_worker(worker, NULL, t.now);
        t.quiet_error = ENOTSUP;
        for (unsigned i = 0; i < 3; i++)
                plan_and_execute();
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert_uint_eq(test_events(&t, EVENT_SIGNAL_REFUSED), 1);
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_SIGNAL);
        ck_assert_int_eq(worker->orders.signal_error, ENOTSUP);
        t.quiet_error = 0;
        plan_and_execute();
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        ck_assert_int_eq(worker->orders.signal_error, 0);
}

TEST(a_refused_stop_is_reported)
{
        struct worker *worker = test_spawn_quiet(&t);

        test_heartbeat(&t, worker, 115, 0, true);
        test_heartbeat(&t, worker, 120, 0, true);
        t.stop_error = EPERM;
        for (unsigned i = 0; i < 3; i++)
                plan_and_execute();
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        ck_assert_uint_eq(test_events(&t, EVENT_SIGNAL_REFUSED), 1);
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_SIGNAL);
        ck_assert_int_eq(worker->orders.signal_error, EPERM);
}

TEST(a_refused_kill_is_reported_and_tried_again)
{
        struct worker *worker = test_spawn_quiet(&t);

        observe_stopped(worker, REASON_OPERATOR, 0, t.now);
        t.now += 60 * USEC_PER_SEC;
        t.kill_error = EPERM;
        plan_and_execute();
        ck_assert_uint_eq(worker->orders.killed_at, 0);
        ck_assert_uint_eq(test_events(&t, EVENT_SIGNAL_REFUSED), 1);
        ck_assert_uint_eq(test_plans(&t, ACTION_KILL, worker), 1);
}

TEST(a_signal_to_a_process_that_is_gone_is_left_to_its_exit)
{
        struct worker *worker = test_spawn_ready(&t);

        observe_quieted(worker, REASON_OPERATOR, ESRCH, t.now);
        ck_assert_uint_eq(test_events(&t, EVENT_SIGNAL_REFUSED), 0);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
}

TEST(the_title_reports_of_jobs_only_while_redis_is_away)
{
        struct worker *worker = test_spawn_ready(&t);

        observe_title(worker, true, 4, false);
        ck_assert_uint_eq(worker->heartbeat.busy, 0);
        test_redis(&t, false);
        observe_title(worker, true, 4, false);
        ck_assert_uint_eq(worker->heartbeat.busy, 4);
        observe_title(worker, false, 0, false);
        ck_assert_uint_eq(worker->heartbeat.busy, 4);
        ck_assert(!worker->evidence.title_known);
}

TEST(arguments_that_give_longer_than_stop_timeout_are_reported_once)
{
        struct worker *worker = test_spawn(&t), *other = test_spawn(&t);

        observe_shutdown_time(worker, 0);
        observe_shutdown_time(worker, 55 * USEC_PER_SEC);
        ck_assert_uint_eq(test_events(&t, EVENT_STOP_TIMEOUT_SHORT), 0);
        observe_shutdown_time(worker, 90 * USEC_PER_SEC);
        observe_shutdown_time(worker, 90 * USEC_PER_SEC);
        observe_shutdown_time(other, 90 * USEC_PER_SEC);
        ck_assert_uint_eq(test_events(&t, EVENT_STOP_TIMEOUT_SHORT), 1);
        ck_assert_uint_eq(test_event(&t, EVENT_STOP_TIMEOUT_SHORT)->index, 1);
        t.fleet_settings.stop_timeout = 105 * USEC_PER_SEC;
        observe_shutdown_time(other, 100 * USEC_PER_SEC);
        ck_assert_uint_eq(test_events(&t, EVENT_STOP_TIMEOUT_SHORT), 1);
        observe_shutdown_time(other, 101 * USEC_PER_SEC);
        ck_assert_uint_eq(test_events(&t, EVENT_STOP_TIMEOUT_SHORT), 2);
}

TEST(arguments_with_every_number_are_reported_a_few_times_at_most)
{
        struct worker *worker = test_spawn(&t);

        for (usec_t shutdown = 1; shutdown <= 86400; shutdown++)
                observe_shutdown_time(worker, shutdown * USEC_PER_SEC);
        for (usec_t shutdown = 86400; shutdown > 0; shutdown--)
                observe_shutdown_time(worker, shutdown * USEC_PER_SEC);
        ck_assert_uint_ge(test_events(&t, EVENT_STOP_TIMEOUT_SHORT), 2);
        ck_assert_uint_le(test_events(&t, EVENT_STOP_TIMEOUT_SHORT), 12);
}

TEST_MAIN("observe", .each = {setup, teardown})
