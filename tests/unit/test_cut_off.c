/* SPDX-License-Identifier: MIT */
/* What is reported of drains that will not last until their jobs have ended, before and after. */
#include "decide/command.h"
#include "model/deadlines.h"
#include "model/idle_proof.h"
#include "observe/observe.h"
#include "world.h"
#include <syslog.h>

TEST_WORLD(1)
{
}

/* A worker that drains, its 2 jobs read of it, or not. */
static struct worker *drain_with_jobs(bool read)
{
        static struct job jobs[] = {{.class = (char *)"HardJob"}, {.class = (char *)"MailJob"}};
        static const struct job_list list = {.jobs = jobs, .n_jobs = 2};

        test_settle(&t);
        struct worker *worker = test_worker(&t, 1);
        test_process(worker)->busy = 2;
        test_run(&t, 6);
        command_quiet_worker(worker, NULL, t.now);
        test_run(&t, 10);
        if (read)
                observe_jobs(worker, &list, 0, t.now);
        return worker;
}

/* With two jobs, in 7 s. */
static void expect_cut_off(const struct worker *worker, enum cut_word word)
{
        struct cut_off cut = worker_cut_off(worker);

        ck_assert_int_eq(worker->verdict.waits_for, WAIT_JOBS);
        ck_assert_uint_eq(worker->heartbeat.busy, 2);
        ck_assert_int_eq(cut.word, word);
        ck_assert_uint_eq((usec_sub(cut.at, t.now) + USEC_PER_SEC - 1) / USEC_PER_SEC, 7);
}

TEST(a_drain_that_will_be_cut_off_says_when_and_what_was)
{
        t.fleet_settings.drain_timeout = 5 * USEC_PER_MIN;
        struct worker *worker = drain_with_jobs(true);
        test_run(&t, (unsigned)((worker->orders.quiet_at + 5 * USEC_PER_MIN - t.now) / USEC_PER_SEC) - 7);
        expect_cut_off(worker, CUT_DRAIN_TIMEOUT);
        while (t.stops == 0)
                test_tick(&t, 1);
        ck_assert_uint_eq(test_event(&t, EVENT_DRAIN_CUT)->index, worker->index);
        ck_assert_uint_eq(t.fleet->totals.jobs_cut_off[CUT_DRAIN_TIMEOUT], 2);
        ck_assert_int_eq(event_kinds[EVENT_DRAIN_CUT].level, LOG_WARNING);
}

TEST(jobs_that_have_ended_since_they_were_read_may_be_among_those_named)
{
        t.fleet_settings.drain_timeout = 5 * USEC_PER_MIN;
        struct worker *worker = drain_with_jobs(true);
        test_process(worker)->busy = 1;
        while (t.stops == 0)
                test_tick(&t, 1);
        ck_assert_uint_eq(test_events(&t, EVENT_DRAIN_CUT), 1);
        ck_assert_uint_eq(t.fleet->totals.jobs_cut_off[CUT_DRAIN_TIMEOUT], 1);
        ck_assert_uint_eq(worker->jobs.count, 2);
}

TEST(classes_are_not_named_where_a_job_is_unknown)
{
        static struct job known = {.class = (char *)"MailJob"};
        static const struct job_list jobs = {.jobs = &known, .n_jobs = 1, .n_oversized = 1};

        t.fleet_settings.drain_timeout = 5 * USEC_PER_MIN;
        struct worker *worker = drain_with_jobs(false);
        observe_jobs(worker, &jobs, USEC_PER_MIN, t.now);
        ck_assert_uint_eq(worker->jobs.count, 2);
        /* One of the two has ended: the unknown job may be the one that runs. */
        test_process(worker)->busy = 1;
        test_run(&t, 10);
        ck_assert_uint_eq(worker_oldest_job_usec(worker, t.now), 0);
        test_run(&t, 310);
        const char *text = test_event_text(&t, EVENT_DRAIN_CUT);
        ck_assert_msg(strstr(text, ", 1 job running") && !strstr(text, "MailJob"), "%s", text);
}

TEST(a_drain_that_ends_by_itself_is_not_cut_off)
{
        t.fleet_settings.drain_timeout = 5 * USEC_PER_MIN;
        test_process(drain_with_jobs(true))->busy = 0;
        test_after(&t, 320, t.stops, 1);
        ck_assert_uint_eq(test_events(&t, EVENT_DRAIN_CUT), 0);
}

TEST(a_shutdown_that_will_cut_off_says_when_and_what_was)
{
        t.settings.shutdown_timeout = USEC_PER_MIN;
        struct worker *worker = drain_with_jobs(false);
        command_shutdown(t.world, t.now);
        test_run(&t, 53);
        expect_cut_off(worker, CUT_SHUTDOWN_TIMEOUT);
        test_run(&t, 8);
        ck_assert_uint_eq(test_events(&t, EVENT_DRAIN_CUT), 1);
        ck_assert_uint_eq(t.fleet->totals.jobs_cut_off[CUT_SHUTDOWN_TIMEOUT], 2);
}

TEST(by_force_jobs_are_cut_off_as_ordered)
{
        drain_with_jobs(false);
        command_stop(t.fleet, true, NULL, t.now);
        test_tick(&t, 1);
        ck_assert_uint_eq(test_events(&t, EVENT_DRAIN_CUT), 1);
        ck_assert_uint_eq(t.fleet->totals.jobs_cut_off[CUT_ORDER], 2);
}

TEST_MAIN("cut_off", .each = {setup, teardown})
