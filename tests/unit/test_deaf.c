/* SPDX-License-Identifier: MIT */
/* Workers that send heartbeats and run no jobs: when they are found, what is not enough for that, and how
 * they are replaced. */
/* promises: P1 P2 P5 P9 */
#include "advice/problem_rules.h"
#include "decide/command.h"
#include "model/deadlines.h"
#include "model/world.h"
#include "observe/observe.h"
#include "observe/observe_deaf.h"
#include "world.h"

#define TICK 5 /* seconds between two readings */

/* The queues as read last, and before. */
static struct queues *queues, *before;
static usec_t before_at;
static struct {
        uint64_t size;
        usec_t head_at; /* when the oldest job was enqueued */
        bool paused, unread;
        double rate; /* seconds by which the oldest job becomes younger in each second */
        const char *name;
} queue;
static const char *served_1, *served_2; /* by worker 1, by the others */

TEST_WORLD(2)
{
        t.fleet_settings.hang_after = 5 * USEC_PER_MIN;
        queue.size = 100;
        queue.rate = 1;
        queue.paused = queue.unread = false;
        queue.name = "default";
        served_1 = served_2 = "default\0";
        before = queues_free(before);
}

static const char *served(const struct worker *worker)
{
        return worker->index == 1 ? served_1 : served_2;
}

static struct queues *read_queues(void)
{
        if (queue.unread)
                return NULL;
        struct queues *read = calloc(1, sizeof(*read));
        ck_assert_ptr_nonnull(read);
        struct queue *added = queues_add(read, queue.name, strlen(queue.name));
        ck_assert_ptr_nonnull(added);
        added->size = queue.size;
        added->paused = queue.paused;
        added->latency_known = true;
        added->latency = usec_sub(t.now, queue.head_at);
        return read;
}

static void read_once(void)
{
        queues = read_queues();
        deaf_observe_queues(t.fleet, &(struct deaf_reading){before, before_at, queues, served}, t.now);
        queues_free(before);
        before = queues;
        before_at = t.now;
}

/* All workers but the first one are at work. */
static void run(unsigned seconds)
{
        for (unsigned i = 0; i < seconds; i++) {
                FLEET_FOREACH_WORKER(t.fleet, worker)
                        if (worker->index != 1 && worker->state == WORKER_ACTIVE)
                                test_process(worker)->busy = 2;
                test_tick(&t, 1);
                queue.head_at += (usec_t)(queue.rate * USEC_PER_SEC);
                if (i % TICK == 0)
                        read_once();
        }
}

static struct worker *begin(void)
{
        test_settle(&t);
        queue.head_at = t.now - 30 * USEC_PER_SEC;
        return test_worker(&t, 1);
}

static bool is_deaf_after(unsigned seconds)
{
        run(seconds);
        return worker_is_deaf(test_worker(&t, 1));
}

TEST(a_worker_that_takes_nothing_is_reported_once_and_kept)
{
        struct worker *worker = begin();

        ck_assert(!is_deaf_after(299));
        ck_assert(is_deaf_after(20));
        ck_assert_uint_eq(test_events(&t, EVENT_DEAF), 1);
        ck_assert_uint_eq(test_event(&t, EVENT_DEAF)->index, 1);
        ck_assert_int_eq(problem_of_worker(worker), PROBLEM_WORKER_DEAF);
        ck_assert(!worker_is_deaf(test_worker(&t, 2)));
        run(600);
        ck_assert_uint_eq(test_events(&t, EVENT_DEAF), 1);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert_uint_eq(test_counts(&t).active, 2);
        ck_assert_uint_eq(t.starts, 2);
        ck_assert_uint_eq(t.quiets + t.stops + t.kills, 0);
}

TEST(with_hang_action_kill_it_is_replaced_first_and_stopped_once_idle)
{
        t.fleet_settings.hang_action = HANG_KILL;
        struct worker *worker = begin();

        run(300);
        ck_assert_uint_eq(t.starts, 2);
        ck_assert(is_deaf_after(10));
        ck_assert_uint_eq(t.starts, 3);
        ck_assert_uint_eq(t.quiets, 0);
        ck_assert_int_eq(test_worker(&t, 3)->started_for, REASON_DEAF);
        ck_assert_int_eq(worker->verdict.retire_reason, REASON_DEAF);
        for (unsigned i = 0; i < 100 && t.quiets == 0; i++)
                run(1);
        ck_assert_uint_eq(test_counts(&t).ready, 2);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        ck_assert_int_eq(worker->reason, REASON_DEAF);
        ck_assert_int_eq(problem_of_worker(worker), PROBLEM_NONE);
        run(120);
        ck_assert_uint_eq(t.stops, 1);
        ck_assert_uint_eq(t.kills, 0);
        ck_assert_uint_eq(test_counts(&t).live, 2);
        ck_assert_uint_eq(t.starts, 3);
}

TEST(one_that_works_again_is_not_deaf_any_more)
{
        t.fleet_settings.hang_action = HANG_KEEP;
        struct worker *worker = begin();

        ck_assert(is_deaf_after(310));
        test_process(worker)->busy = 1;
        ck_assert(!is_deaf_after(20));
        ck_assert_uint_eq(test_events(&t, EVENT_RUNS_AGAIN), 1);
        test_process(worker)->busy = 0;
        ck_assert(!is_deaf_after(290));
        ck_assert(is_deaf_after(30));
}

/* It may be replaced: its replacement may have emptied the queue. */
TEST(one_that_was_found_deaf_remains_so_without_waiting_jobs)
{
        begin();
        ck_assert(is_deaf_after(310));
        queue.size = 0;
        ck_assert(is_deaf_after(60));
}

enum lack {
        NONE_WAITS,
        NONE_IS_TAKEN,
        QUEUE_IS_PAUSED,
        QUEUES_ARE_UNREAD,
        ITS_QUEUES_ARE_UNKNOWN,
        IT_SERVES_ANOTHER_QUEUE,
        OTHERS_SERVE_ANOTHER_QUEUE,
        NEVER_HUNG,
        IT_WORKS,
        IT_IS_QUIET,
        IT_IS_SILENT,
        IT_IS_AMBIGUOUS,
        _LACKS,
};

static void lack(enum lack lacks)
{
        struct process *process = test_process(test_worker(&t, 1));

        queue.size = lacks == NONE_WAITS ? 0 : queue.size;
        queue.rate = lacks == NONE_IS_TAKEN ? 0 : queue.rate;
        queue.paused = lacks == QUEUE_IS_PAUSED;
        queue.unread = lacks == QUEUES_ARE_UNREAD;
        served_1 = lacks == ITS_QUEUES_ARE_UNKNOWN    ? NULL
                   : lacks == IT_SERVES_ANOTHER_QUEUE ? "mailers\0"
                                                      : served_1;
        served_2 = lacks == OTHERS_SERVE_ANOTHER_QUEUE ? "mailers\0" : served_2;
        t.fleet_settings.hang_after = lacks == NEVER_HUNG ? 0 : t.fleet_settings.hang_after;
        process->busy = lacks == IT_WORKS;
        process->native_thread = lacks == IT_IS_QUIET;
        process->hung = lacks == IT_IS_SILENT;
        test_worker(&t, 1)->heartbeat.ambiguous = lacks == IT_IS_AMBIGUOUS;
        if (lacks == IT_IS_QUIET)
                command_quiet_worker(test_worker(&t, 1), NULL, t.now);
}

TEST_LOOP(no_effect_unless_the_evidence_is_complete, _LACKS)
{
        begin();
        run(100);
        lack(_i);
        run(800);
        ck_assert_uint_eq(test_events(&t, EVENT_DEAF), 0);
}

TEST(without_another_worker_at_work_none_is_deaf)
{
        begin();
        for (unsigned i = 0; i < 600; i++) {
                test_tick(&t, 1);
                queue.head_at += USEC_PER_SEC;
                if (i % TICK == 0)
                        read_once();
        }
        ck_assert_uint_eq(test_events(&t, EVENT_DEAF), 0);
}

/* Jobs without times: only the number of waiting jobs shows that some were taken. */
TEST(a_queue_that_shrinks_shows_it_too)
{
        begin();
        queue.rate = 0;
        queue.size = 10000;
        for (unsigned i = 0; i < 60; i++) {
                queue.size -= i % 10 == 0;
                run(TICK);
        }
        ck_assert(is_deaf_after(20));
}

TEST(a_deletion_by_hand_is_not_enough)
{
        begin();
        queue.rate = 0;
        run(100);
        queue.size -= 50;
        ck_assert(!is_deaf_after(800));
}

static void redis_goes(void)
{
        test_redis(&t, false);
        test_run(&t, 10);
        test_redis(&t, true);
}
static void host_sleeps(void)
{
        t.suspended_usec += USEC_PER_HOUR;
}

enum interruption {
        REDIS_GOES,
        HOST_SLEEPS,
        CLOCK_STEPS,
        A_READING_FAILS,
        READINGS_CEASE,
        QUEUE_IS_EMPTY,
        _INTERRUPTIONS
};

TEST_LOOP(these_begin_the_observation_anew, _INTERRUPTIONS)
{
        enum interruption interruption = _i;

        begin();
        run(200);
        if (interruption == REDIS_GOES)
                redis_goes();
        if (interruption == HOST_SLEEPS)
                host_sleeps();
        t.stepped_usec += interruption == CLOCK_STEPS ? 3600 * (int64_t)USEC_PER_SEC : 0;
        queue.unread = interruption == A_READING_FAILS;
        queue.size = interruption == QUEUE_IS_EMPTY ? 0 : 100;
        if (interruption == READINGS_CEASE)
                test_run(&t, 60);
        else if (interruption >= A_READING_FAILS)
                run(TICK);
        queue.unread = false;
        queue.size = 100;
        ck_assert(!is_deaf_after(290));
        ck_assert(is_deaf_after(60));
}

/* What was found out before is no reason to act on. */
TEST(after_an_outage_or_a_clock_jump_a_deaf_worker_counts_as_any)
{
        t.fleet_settings.hang_action = HANG_KEEP;
        begin();
        ck_assert(is_deaf_after(310));
        redis_goes();
        ck_assert(!worker_is_deaf(test_worker(&t, 1)));
        ck_assert(is_deaf_after(340));
        host_sleeps();
        test_tick(&t, 1);
        ck_assert(!worker_is_deaf(test_worker(&t, 1)));
}

TEST(an_estimated_wait_is_no_evidence_that_jobs_are_taken)
{
        struct traits traits = *t.fleet_settings.traits;

        begin();
        traits.latency_estimated = true;
        t.fleet_settings.traits = &traits;
        ck_assert(!is_deaf_after(600));
        traits.latency_estimated = false;
        ck_assert(is_deaf_after(320));
}

/* A reader may answer late, after a newer heartbeat without work. */
TEST(a_repeated_heartbeat_that_shows_work_begins_the_observation_anew)
{
        struct worker *worker = begin();
        const struct heartbeat idle = {.sent_usec = 1}, busy = {.sent_usec = 1, .busy = 1};

        run(200);
        usec_t since = worker->deaf.since;
        ck_assert_uint_ne(since, 0);
        observe_heartbeat(worker, &idle, t.now);
        ck_assert_uint_eq(worker->deaf.since, since);
        observe_heartbeat(worker, &busy, t.now);
        ck_assert(!is_deaf_after(299));
        ck_assert(is_deaf_after(20));
        observe_heartbeat(worker, &busy, t.now);
        ck_assert(worker_is_deaf(worker));
}

TEST(queues_are_wanted_while_one_shows_no_work_and_another_does)
{
        begin();
        ck_assert(!deaf_is_suspected(t.fleet, t.now));
        run(60);
        ck_assert(deaf_is_suspected(t.fleet, t.now));
        lack(IT_WORKS);
        run(60);
        ck_assert(!deaf_is_suspected(t.fleet, t.now));
        test_process(test_worker(&t, 1))->busy = 0;
        run(60);
        ck_assert(deaf_is_suspected(t.fleet, t.now));
        lack(NEVER_HUNG);
        ck_assert(!deaf_is_suspected(t.fleet, t.now));
}

static void begin_alone(void)
{
        test_settle(&t);
        test_process(test_worker(&t, 1))->silent = true;
}

/* A heartbeat of worker 1: its loop that fetches jobs last turned so long ago. */
static void loop_turned(unsigned seconds_ago, unsigned busy, bool runs_job)
{
        static uint64_t sent;
        struct worker *worker = test_worker(&t, 1);

        t.now += 2 * USEC_PER_SEC;
        sent = MAX(sent, worker->heartbeat.written_usec) + 1;
        observe_heartbeat(worker,
                          &(struct heartbeat){.sent_usec = sent,
                                              .busy = busy,
                                              .looked_usec = seconds_ago * USEC_PER_SEC,
                                              .work_list_known = true,
                                              .work_list_empty = !runs_job},
                          t.now);
}

TEST(a_loop_that_does_not_turn_is_deaf_without_another_worker)
{
        begin_alone();
        struct worker *worker = test_worker(&t, 1);
        loop_turned(299, 0, false);
        loop_turned(299, 0, false);
        ck_assert(!worker_is_deaf(worker));
        /* Jobs that it has taken and not begun keep it busy. */
        loop_turned(301, 3, false);
        ck_assert(!worker_is_deaf(worker));
        loop_turned(303, 3, false);
        ck_assert(worker_is_deaf(worker));
        ck_assert_uint_eq(test_events(&t, EVENT_DEAF), 1);
        ck_assert_int_eq(problem_of_worker(worker), PROBLEM_WORKER_DEAF);
        ck_assert_uint_eq(t.now - worker->deaf.since, 303 * USEC_PER_SEC);
        loop_turned(305, 3, false);
        ck_assert_uint_eq(test_events(&t, EVENT_DEAF), 1);
        loop_turned(1, 0, false);
        ck_assert(!worker_is_deaf(worker));
        ck_assert_uint_eq(test_events(&t, EVENT_RUNS_AGAIN), 1);
}

/* In a worker with one thread the job that runs holds the loop up. */
TEST(a_loop_that_a_running_job_may_hold_up_is_not_deaf)
{
        begin_alone();
        for (unsigned i = 0; i < 10; i++)
                loop_turned(1000, 1, true);
        ck_assert(!worker_is_deaf(test_worker(&t, 1)));
}

/* A process that was stopped and continues sends one such heartbeat. */
TEST(a_worker_that_was_stopped_is_not_deaf_as_it_continues)
{
        begin_alone();
        for (unsigned i = 0; i < 10; i++) {
                loop_turned(1000, 0, false);
                loop_turned(1, 0, false);
        }
        ck_assert(!worker_is_deaf(test_worker(&t, 1)));
}

TEST(without_hang_after_no_loop_is_deaf)
{
        begin_alone();
        t.fleet_settings.hang_after = 0;
        loop_turned(100000, 0, false);
        loop_turned(100000, 0, false);
        ck_assert(!worker_is_deaf(test_worker(&t, 1)));
}

TEST_MAIN("deaf", .each = {setup, teardown})
