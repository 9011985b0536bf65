/* SPDX-License-Identifier: MIT */
/* Is nothing done to a worker on the account of beats that may be another's? */
/* promises: P1 P5 */
#include "decide/command.h"
#include "model/deadlines.h"
#include "model/world.h"
#include "observe/match.h"
#include "observe/observe.h"
#include "world.h"

TEST_WORLD(1)
{
}

/* One more, of each ten seconds. */
static void send_heartbeat(struct worker *worker, bool quiet)
{
        static double at = 1000;

        t.now += 10 * USEC_PER_SEC;
        at += 10;
        test_heartbeat(&t, worker, at, 0, quiet);
}

static bool plans(enum action_kind kind, struct worker *worker)
{
        test_plan(&t);
        return test_planned(&t, kind, worker) > 0;
}

static const struct {
        bool known, quiet;
        unsigned busy;
        bool stops;
} titles[] = {
        {.known = false, .stops = true},
        {.known = false, .busy = 1, .stops = true}, /* what is not known denies nothing */
        {.known = true, .quiet = true, .stops = true},
        {.known = true, .quiet = true, .busy = 1, .stops = false},
        {.known = true, .quiet = false, .stops = false},
        {.known = true, .quiet = false, .busy = 2, .stops = false},
};

TEST_LOOP(two_idle_heartbeats_prove_nothing_against_the_title, ELEMENTSOF(titles))
{
        struct worker *worker = test_spawn_quiet(&t);

        ck_assert_uint_ne(worker_poll_items(worker, false, t.now) & POLL_TITLE, 0);
        send_heartbeat(worker, true);
        ck_assert(!plans(ACTION_STOP, worker));
        observe_title(worker, titles[_i].known, titles[_i].busy, titles[_i].quiet);
        send_heartbeat(worker, true);
        ck_assert(plans(ACTION_STOP, worker) == titles[_i].stops);
        /* However often it is said. */
        for (int i = 0; i < 10; i++) {
                send_heartbeat(worker, true);
                observe_title(worker, titles[_i].known, titles[_i].busy, titles[_i].quiet);
                ck_assert(plans(ACTION_STOP, worker) == titles[_i].stops);
        }
        ck_assert_uint_eq(test_events(&t, EVENT_AMBIGUOUS), !titles[_i].stops);
        ck_assert(worker->heartbeat.ambiguous == !titles[_i].stops);
        if (!titles[_i].stops)
                ck_assert_int_eq(worker->verdict.waits_for, WAIT_AMBIGUOUS);
        observe_title(worker, true, 0, true);
        ck_assert(plans(ACTION_STOP, worker));
        ck_assert(!worker->heartbeat.ambiguous);
}

TEST(a_title_that_was_read_before_the_heartbeat_is_waited_for_in_silence)
{
        struct worker *worker = test_spawn_quiet(&t);

        observe_title(worker, true, 1, true);
        send_heartbeat(worker, true);
        send_heartbeat(worker, true);
        ck_assert(!plans(ACTION_STOP, worker));
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_HEARTBEATS);
        ck_assert_uint_eq(worker->verdict.waits_count, 1);
        ck_assert_uint_eq(test_events(&t, EVENT_AMBIGUOUS), 0);
        observe_title(worker, true, 0, true);
        ck_assert(plans(ACTION_STOP, worker));
}

TEST(one_that_is_quiet_by_its_title_is_not_reported_again)
{
        struct worker *worker = test_spawn_quiet(&t);

        for (int i = 0; i < WORKER_NOT_QUIET_HEARTBEATS; i++)
                send_heartbeat(worker, false);
        ck_assert(plans(ACTION_QUIET, worker)); /* it has not taken the signal */
        observe_title(worker, true, 0, true);
        ck_assert(!plans(ACTION_QUIET, worker));
        send_heartbeat(worker, false);
        observe_title(worker, true, 0, true);
        ck_assert(worker->heartbeat.ambiguous);
        ck_assert(!plans(ACTION_QUIET, worker) && !plans(ACTION_STOP, worker));
        for (int i = 0; i < 2; i++)
                send_heartbeat(worker, true); /* it is its own after all */
        observe_title(worker, true, 0, true);
        ck_assert(!worker->heartbeat.ambiguous);
        ck_assert(plans(ACTION_STOP, worker));
}

TEST(one_of_several_that_heartbeat_under_its_name_gets_no_signal)
{
        struct worker *worker = test_spawn(&t);

        observe_ambiguous(worker, false);
        ck_assert_uint_eq(test_events(&t, EVENT_AMBIGUOUS), 0);
        for (int i = 0; i < 3; i++)
                observe_ambiguous(worker, true);
        ck_assert_uint_eq(test_events(&t, EVENT_AMBIGUOUS), 1);
        t.now += t.fleet_settings.boot_timeout + USEC_PER_SEC;
        observe_booted(worker, false, t.now);
        ck_assert(!plans(ACTION_STOP, worker));
        ck_assert_uint_eq(test_events(&t, EVENT_BOOT_TIMEOUT), 0);
        observe_booted(worker, true, t.now);
        ck_assert_uint_eq(test_events(&t, EVENT_ELSEWHERE), 0);
        command_quiet_fleet(t.fleet, NULL, t.now);
        ck_assert(!plans(ACTION_QUIET, worker) && !plans(ACTION_STOP, worker));
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_AMBIGUOUS);
        send_heartbeat(worker, false);
        ck_assert(!worker->heartbeat.ambiguous);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        observe_ambiguous(worker, true); /* what is known to beat is not given up */
        ck_assert(!worker->heartbeat.ambiguous);
}

/* Its clock goes back by hours, and forward by a day, as the host's may: it is the same worker. */
TEST(no_step_of_a_clock_makes_it_another)
{
        static const double steps[] = {-7 * 3600.0, 86400.0, -3600.0};
        struct worker *worker = test_spawn_ready(&t);
        double at = 1000000;

        for (size_t i = 0; i < ELEMENTSOF(steps); i++) {
                at += steps[i];
                for (int j = 0; j < 3; j++) {
                        t.now += 10 * USEC_PER_SEC;
                        at += 10;
                        test_heartbeat(&t, worker, at, 0, false);
                }
                ck_assert(worker_fresh(worker, t.now));
                ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        }
        ck_assert_uint_eq(test_events(&t, EVENT_AMBIGUOUS), 0);
}

#define OURS    "vm:100:aaaaaaaaaaaa"
#define ANOTHER "vm:100:bbbbbbbbbbbb"

static void find_both(struct match *match, const struct worker *worker)
{
        static const char *const identities[] = {OURS, ANOTHER};

        ck_assert_int_eq(match_host_is(match, "vm", t.now), 0);
        match_scan_begin(match, t.now);
        for (size_t i = 0; i < ELEMENTSOF(identities); i++) {
                const struct match_found found = {.identity = identities[i],
                                                  .len = strlen(identities[i]),
                                                  .host_len = strlen("vm"),
                                                  .pid = 100};

                ck_assert_int_eq(match_scan_add(match, &found, t.now), 0);
                match->candidates[i]->owner = worker;
        }
        match_scan_end(match);
}

/* They are sorted by identity. */
static void read_both(struct match *match, uint64_t ours, uint64_t another)
{
        const struct heartbeat heartbeats[] = {{.sent_usec = ours}, {.sent_usec = another}};

        for (size_t i = 0; i < ELEMENTSOF(heartbeats); i++) {
                match->candidates[i]->asked_at = t.now;
                match_read(match->candidates[i], &heartbeats[i], false, t.now);
        }
}

static const char *decided(const struct match *match, const struct worker *worker)
{
        const struct match_claim claim = {
                .owner = worker,
                .stale_usec = worker_outlived_usec(worker),
                .doubt_at = t.world->doubt.since,
        };
        bool ambiguous;
        const struct candidate *candidate = match_decide(match, &claim, &ambiguous);

        return candidate ? candidate->identity : "none";
}

/* From now on; the next one that is longer by a tenth of a second is a doubt. */
static usec_t longest_unnoticed_pause(void)
{
        const usec_t step = 100 * USEC_PER_MSEC;
        usec_t pause = 0;

        (void)observe_clocks(t.world, t.now, t.now, t.now);
        const struct doubt before = t.world->doubt;
        while (!observe_clocks(t.world, t.now + pause, t.now + pause, t.now + pause)) {
                pause += step;
                t.world->doubt = before;
        }
        t.world->doubt = before;
        return pause - step;
}

static const usec_t intervals[] = {100 * USEC_PER_MSEC, 5 * USEC_PER_SEC, 10 * USEC_PER_SEC, USEC_PER_MIN};

/* The machine pauses right before the second heartbeat of the worker, and the other host continues. */
TEST_LOOP(no_pause_that_goes_unnoticed_gives_it_the_heartbeats_of_another_host, ELEMENTSOF(intervals))
{
        struct worker *worker = test_spawn(&t);
        _cleanup_(match_clear) struct match match = {0};

        t.settings.check_interval = intervals[_i];
        find_both(&match, worker);
        read_both(&match, 20, 20);
        t.now += 10 * USEC_PER_SEC;
        read_both(&match, 20, 30);
        t.now += longest_unnoticed_pause();
        read_both(&match, 20, 40);
        ck_assert_str_eq(decided(&match, worker), "none");
        /* Not for ever. */
        t.now += worker_outlived_usec(worker);
        read_both(&match, 20, 50);
        ck_assert_str_eq(decided(&match, worker), ANOTHER);
}

TEST_MAIN("ambiguous", .each = {setup, teardown})
