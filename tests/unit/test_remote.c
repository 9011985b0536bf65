/* SPDX-License-Identifier: MIT */
/* Workers that signals cannot reach: what is read of them, what is sent again, and when they are killed. */
/* promises: P1 P3 P5 */
#include "model/deadlines.h"
#include "model/idle_proof.h"
#include "model/world.h"
#include "observe/observe.h"
#include "observe/rescue.h"
#include "world.h"

#define SEC  USEC_PER_SEC
#define GIGA ((uint64_t)1 << 30)

TEST_WORLD(1)
{
}

/* A worker that is ready, and then out of reach. */
static struct worker *spawn(void)
{
        struct worker *worker = test_spawn_ready(&t);

        worker->evidence.threads_witness = worker->evidence.title_known = true;
        observe_remote(worker);
        ck_assert(worker->process.remote);
        return worker;
}

TEST(of_a_remote_worker_only_its_server_is_asked)
{
        struct worker *worker = spawn();
        static const enum worker_state states[] = {WORKER_STARTING, WORKER_ACTIVE, WORKER_QUIET,
                                                   WORKER_STOPPING};
        unsigned seen = 0;

        FOREACH_ELEMENT(state, states) {
                worker->state = *state;
                for (unsigned fast = 0; fast < 2; fast++)
                        seen |= worker_poll_items(worker, fast, t.now);
        }
        ck_assert_uint_eq(seen, POLL_HEARTBEAT | POLL_WORK_LIST);
}

TEST(what_proc_has_shown_before_proves_nothing_any_more)
{
        struct worker *worker = spawn();

        ck_assert(!worker->evidence.threads_witness && !worker->evidence.title_known);
        ck_assert_uint_eq(test_events(&t, EVENT_REMOTE), 1);
        observe_remote(worker);
        ck_assert_uint_eq(test_events(&t, EVENT_REMOTE), 1);
}

TEST(another_process_is_in_reach)
{
        struct worker *worker = spawn();

        observe_heartbeat_process(worker, worker->process.heartbeat_pid, worker->process.heartbeat_start,
                                  t.now);
        ck_assert(worker->process.remote);
        observe_heartbeat_process(worker, worker->process.pid + 1, 7, t.now);
        ck_assert(!worker->process.remote);
}

static void beat(struct worker *worker, double sent_at, uint64_t rss_bytes)
{
        const struct heartbeat heartbeat = {.sent_usec = (uint64_t)(sent_at * 1e6), .rss_bytes = rss_bytes};

        observe_heartbeat(worker, &heartbeat, t.now);
}

TEST(its_memory_is_that_of_its_heartbeats)
{
        struct worker *worker = spawn();

        t.fleet_settings.memory_threshold = GIGA;
        beat(worker, 120, 2 * GIGA);
        beat(worker, 130, 2 * GIGA);
        ck_assert(!worker->memory.over_threshold);
        /* The same heartbeat is no further sample. */
        beat(worker, 130, 2 * GIGA);
        ck_assert(!worker->memory.over_threshold);
        beat(worker, 140, 2 * GIGA);
        ck_assert(worker->memory.over_threshold);
        ck_assert_uint_eq(worker->memory.bytes, 2 * GIGA);
}

TEST(of_a_worker_in_reach_the_heartbeat_is_no_sample)
{
        struct worker *worker = test_spawn_ready(&t);
        uint64_t before = worker->memory.bytes;

        beat(worker, 120, 2 * GIGA);
        ck_assert_uint_eq(worker->memory.bytes, before);
}

TEST(two_idle_heartbeats_with_an_empty_work_list_prove_it_idle)
{
        struct worker *worker = spawn();

        observe_quieted(worker, REASON_OPERATOR, 0, t.now);
        test_heartbeat(&t, worker, 120, 0, true);
        ck_assert(!worker_proven_idle(worker));
        test_heartbeat(&t, worker, 130, 0, true);
        ck_assert(worker_proven_idle(worker));
        worker->jobs.list_empty = false;
        ck_assert(!worker_proven_idle(worker));
}

static struct worker *spawn_stopping(void)
{
        struct worker *worker = spawn();

        observe_quieted(worker, REASON_OPERATOR, 0, t.now);
        observe_stopped(worker, REASON_OPERATOR, 0, t.now);
        ck_assert_int_eq(worker->state, WORKER_STOPPING);
        return worker;
}

TEST(the_stop_signal_is_sent_again_and_the_deadline_stays)
{
        struct worker *worker = spawn_stopping();
        usec_t stopped_at = t.now, kill_at = worker_kill_at(worker),
               sent = t.fleet_settings.traits->sent_usec;

        ck_assert_uint_eq(worker_repeat_stop_at(worker), stopped_at + 2 * sent);
        ck_assert_uint_eq(kill_at, stopped_at + t.fleet_settings.stop_timeout + 2 * sent);
        t.now = worker_repeat_stop_at(worker) - 1;
        ck_assert(!test_stops(&t, worker));
        t.now++;
        ck_assert(test_stops(&t, worker));
        observe_stopped(worker, REASON_OPERATOR, 0, t.now);
        ck_assert(!test_stops(&t, worker));
        ck_assert_uint_eq(worker_repeat_stop_at(worker), t.now + 2 * sent);
        ck_assert_uint_eq(worker_kill_at(worker), kill_at);
        ck_assert_uint_eq(test_events(&t, EVENT_STOPPING), 1);
        /* An adopted worker has got the signal from an earlier sqmgr, or not. */
        worker->orders.stop_last_at = 0;
        ck_assert_uint_eq(worker_repeat_stop_at(worker), stopped_at + 2 * sent);
}

TEST(nothing_is_sent_while_redis_is_down)
{
        struct worker *worker = spawn_stopping();

        test_redis(&t, false);
        ck_assert_uint_eq(worker_repeat_stop_at(worker), USEC_INFINITY);
        t.now += 3600 * SEC;
        ck_assert(!test_stops(&t, worker));
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_REDIS);
}

TEST(one_in_reach_gets_its_stop_signal_once)
{
        struct worker *worker = test_spawn_quiet(&t);

        observe_stopped(worker, REASON_OPERATOR, 0, t.now);
        ck_assert_uint_eq(worker_repeat_stop_at(worker), USEC_INFINITY);
        ck_assert_uint_eq(worker_kill_at(worker), t.now + t.fleet_settings.stop_timeout);
}

TEST(an_order_that_heartbeats_deny_is_given_again)
{
        struct worker *worker = spawn();

        observe_quieted(worker, REASON_OPERATOR, 0, t.now);
        test_heartbeat(&t, worker, 120, 1, false);
        test_heartbeat(&t, worker, 130, 1, false);
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 0);
        test_heartbeat(&t, worker, 140, 1, false);
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 1);
}

/* A leftover worker: its heartbeats, 10 s apart. */
static struct leftover left;
static uint64_t left_beat;

static enum leftover_step left_beats(unsigned busy, bool quiet)
{
        const struct heartbeat heartbeat = {.sent_usec = left_beat += 10 * SEC,
                                            .busy = busy,
                                            .quiet = quiet,
                                            .work_list_known = true,
                                            .work_list_empty = busy == 0};

        t.now += 10 * SEC;
        return leftover_observe(&left, t.fleet, &heartbeat, t.now);
}

static void left_begin(void)
{
        left = (struct leftover){.since = t.now};
        left_beat = 0;
        ck_assert_int_eq(left_beats(1, false), LEFTOVER_WAIT);
}

TEST(a_leftover_is_quieted_and_stopped_once_idle)
{
        left_begin();
        ck_assert_int_eq(left_beats(1, false), LEFTOVER_QUIET);
        ck_assert_int_eq(left_beats(1, false), LEFTOVER_WAIT);
        ck_assert_int_eq(left_beats(1, true), LEFTOVER_WAIT);
        ck_assert_int_eq(left_beats(0, true), LEFTOVER_WAIT);
        ck_assert_int_eq(left_beats(1, true), LEFTOVER_WAIT);
        ck_assert_int_eq(left_beats(0, true), LEFTOVER_WAIT);
        ck_assert_int_eq(left_beats(0, true), LEFTOVER_STOP);
        ck_assert_int_eq(left_beats(0, true), LEFTOVER_WAIT);
        ck_assert_int_eq(left_beats(0, true), LEFTOVER_WAIT);
        ck_assert_int_eq(left_beats(0, true), LEFTOVER_STOP);
}

TEST(a_leftover_that_does_not_heed_is_asked_again)
{
        left_begin();
        ck_assert_int_eq(left_beats(1, false), LEFTOVER_QUIET);
        ck_assert_int_eq(left_beats(1, false), LEFTOVER_WAIT);
        ck_assert_int_eq(left_beats(1, false), LEFTOVER_WAIT);
        ck_assert_int_eq(left_beats(1, false), LEFTOVER_QUIET);
}

static enum leftover_step left_is_silent(usec_t span)
{
        const struct heartbeat same = {.sent_usec = left_beat, .busy = 1};

        t.now += span;
        return leftover_observe(&left, t.fleet, &same, t.now);
}

TEST(a_leftover_has_ended_once_its_heartbeat_has_not_changed_for_long)
{
        usec_t stale = t.fleet_settings.traits->stale_usec;

        left_begin();
        ck_assert_int_eq(left_beats(1, true), LEFTOVER_WAIT);
        ck_assert_int_eq(left_is_silent(stale), LEFTOVER_WAIT);
        ck_assert_int_eq(left_is_silent(1), LEFTOVER_ENDED);
        /* The same without any heartbeat. */
        left = (struct leftover){.since = t.now};
        ck_assert_int_eq(leftover_observe(&left, t.fleet, NULL, t.now + stale), LEFTOVER_WAIT);
        ck_assert_int_eq(leftover_observe(&left, t.fleet, NULL, t.now + stale + 1), LEFTOVER_ENDED);
}

TEST(a_leftover_whose_clock_goes_back_has_not_ended)
{
        usec_t end = t.now + 10 * t.fleet_settings.traits->stale_usec;

        left_begin();
        left_beat = 3600 * SEC;
        ck_assert_int_eq(left_beats(1, true), LEFTOVER_WAIT);
        left_beat = 60 * SEC;
        while (t.now < end)
                ck_assert_int_eq(left_beats(1, true), LEFTOVER_WAIT);
        ck_assert_int_eq(left_is_silent(t.fleet_settings.traits->stale_usec + 1), LEFTOVER_ENDED);
}

TEST(no_leftover_ends_by_an_outage)
{
        usec_t stale = t.fleet_settings.traits->stale_usec;

        left_begin();
        t.now += 3600 * SEC;
        t.fleet->redis_at = t.now;
        ck_assert_int_eq(left_is_silent(stale), LEFTOVER_WAIT);
        ck_assert_int_eq(left_is_silent(1), LEFTOVER_ENDED);
}

TEST(drain_timeout_bounds_a_leftover)
{
        left_begin();
        t.fleet_settings.drain_timeout = 60 * SEC;
        ck_assert_int_eq(left_beats(1, false), LEFTOVER_QUIET);
        t.now += 60 * SEC;
        ck_assert_int_eq(left_beats(1, true), LEFTOVER_STOP);
}

TEST_MAIN("remote", .each = {setup, teardown})
