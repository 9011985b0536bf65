/* SPDX-License-Identifier: MIT */
/* The jobs that ran in a worker as its memory exceeded a limit: when they are read, how much memory the
 * worker had gained, and the report. */
#include "golden.h"
#include "model/describe.h"
#include "model/fleets.h"
#include "model/world.h"
#include "observe/culprits.h"
#include "observe/observe.h"
#include "world.h"
#include <signal.h>

#define MIB(n) ((uint64_t)(n) << 20)

static struct worker *worker;

TEST_WORLD(1)
{
        t.fleet_settings.memory_threshold = MIB(500);
        worker = test_spawn(&t);
        observe_heartbeat_process(worker, worker->process.pid, worker->process.start, t.now);
}

/* Another heartbeat of its own, read now. Returns the size from which it has grown. */
static uint64_t send_heartbeat(unsigned busy, uint64_t rss_bytes)
{
        static uint64_t sent_usec = 100;
        const struct heartbeat heartbeat = {.sent_usec = ++sent_usec, .busy = busy, .rss_bytes = rss_bytes};

        observe_heartbeat(worker, &heartbeat, t.now);
        return worker->memory.mark_bytes;
}

/* A poll: a sample, and then its heartbeat is read, which is the same as before. Returns the same. */
static uint64_t look(uint64_t bytes)
{
        const struct heartbeat same = {.sent_usec = worker->heartbeat.written_usec,
                                       .busy = worker->heartbeat.busy,
                                       .rss_bytes = MIB(1)};

        observe_memory(worker, bytes, t.now);
        observe_heartbeat(worker, &same, t.now);
        return worker->memory.mark_bytes;
}

static void pass(unsigned seconds)
{
        t.now += seconds * USEC_PER_SEC;
}

static uint64_t send_heartbeat_after(unsigned seconds, unsigned busy, uint64_t rss_bytes)
{
        pass(seconds);
        return send_heartbeat(busy, rss_bytes);
}

static uint64_t poll_after(unsigned seconds, uint64_t bytes)
{
        pass(seconds);
        return look(bytes);
}

/* Jobs of these classes, named in one text; borrowed from static memory. */
static const struct job_list *jobs_of(const char *classes)
{
        static struct job jobs[64];
        static char text[4096];
        static struct job_list list;
        char *save = NULL;

        snprintf(text, sizeof(text), "%s", classes);
        list = (struct job_list){.jobs = jobs};
        for (char *class = strtok_r(text, "|", &save); class; class = strtok_r(NULL, "|", &save)) {
                ck_assert_uint_lt(list.n_jobs, ELEMENTSOF(jobs));
                jobs[list.n_jobs++] = (struct job){.class = class};
        }
        return &list;
}

static const char *reported(enum culprits_cause cause, const char *classes)
{
        world_events_clear(t.world);
        culprits_observe(t.fleet, worker, cause, jobs_of(classes), t.now);
        return test_event_text(&t, EVENT_CULPRITS);
}

static const char *reported_memory(const char *classes)
{
        static char prefix[64];
        const char *text = reported(CULPRITS_MEMORY, classes);
        int n = snprintf(prefix, sizeof(prefix), "default/1 (pid %d) ", (int)worker->process.pid);

        ck_assert_msg(strncmp(text, prefix, (size_t)n) == 0, "%s", text);
        return text + n;
}

TEST(the_classes_are_reported_with_the_growth_since_the_last_idle_heartbeat)
{
        send_heartbeat(0, MIB(100));
        send_heartbeat_after(5, 0, MIB(308));
        poll_after(40, MIB(520));
        send_heartbeat(3, MIB(520));
        golden_expect("events",
                      "culprits: the classes are reported with the growth since the last idle heartbeat",
                      reported_memory("ReportJob|MailJob|ReportJob"));
        golden_expect("events",
                      "culprits: the classes are reported with the growth since the last idle heartbeat, 2",
                      reported(CULPRITS_OOM, "MailJob") + strlen("default/1 (pid 100) "));
        ck_assert_int_eq(event_kinds[EVENT_CULPRITS].level, 6);

        ck_assert_int_eq(t.fleet->culprits[0].cause, CULPRITS_OOM);
        const struct culprits *first = &t.fleet->culprits[1];
        ck_assert_int_eq(first->cause, CULPRITS_MEMORY);
        ck_assert_uint_eq(first->at, t.now);
        ck_assert_uint_eq(first->index, 1);
        ck_assert_int_eq(first->pid, worker->process.pid);
        ck_assert_uint_eq(first->memory_bytes, MIB(520));
        ck_assert_uint_eq(first->growth_bytes, MIB(212));
        ck_assert_uint_eq(first->growth_usec, 40 * USEC_PER_SEC);
        ck_assert_uint_eq(first->classes.n, 2);
        ck_assert_uint_eq(first->classes.list[0].jobs, 2);
        ck_assert_uint_eq(first->classes.more, 0);
        ck_assert_uint_eq(t.fleet->culprits[2].at, 0);
}

TEST(no_growth_no_memory_and_no_job_are_said_as_they_are)
{
        send_heartbeat(0, MIB(300));
        golden_expect("events", "culprits: no growth no memory and no job are said as they are",
                      reported_memory(""));
        look(MIB(200));
        ck_assert_str_eq(reported_memory("A"), "used 200M, running A");
        ck_assert_uint_eq(t.fleet->culprits[0].growth_bytes, 0);
        golden_expect("events", "culprits: no growth no memory and no job are said as they are, 2",
                      reported(CULPRITS_OOM, ""));
}

TEST(a_worker_of_whose_jobs_nothing_is_known_is_not_said_to_run_none)
{
        static struct job known = {.class = (char *)"MailJob"};
        struct job_list jobs = {.jobs = &known, .n_oversized = 1};

        send_heartbeat(0, MIB(300));
        culprits_observe(t.fleet, worker, CULPRITS_MEMORY, &jobs, t.now);
        ck_assert_uint_eq(test_events(&t, EVENT_CULPRITS), 0);
        jobs.n_jobs = 1;
        culprits_observe(t.fleet, worker, CULPRITS_MEMORY, &jobs, t.now);
        ck_assert_uint_eq(test_events(&t, EVENT_CULPRITS), 1);
}

TEST(one_whose_index_another_has_by_now_is_a_former_one)
{
        char text[CULPRITS_TEXT_MAX], former[128];
        pid_t pid = worker->process.pid;

        reported_memory("Mail");
        snprintf(former, sizeof(former), "former default/1 (pid %d) ", (int)pid);
        test_exit(&t, worker, 1);
        ck_assert_ptr_null(
                strstr(culprits_text(t.fleet, &t.fleet->culprits[0], text, sizeof(text)), "former"));
        fleet_reap(t.fleet, test_process_free);
        worker = test_spawn(&t);
        ck_assert_uint_eq(worker->index, 1);
        culprits_text(t.fleet, &t.fleet->culprits[0], text, sizeof(text));
        ck_assert_msg(strncmp(text, former, strlen(former)) == 0, "%s", text);
}

TEST(an_empty_list_reports_nothing_where_jobs_ran)
{
        send_heartbeat(1, MIB(300));
        ck_assert_str_eq(reported(CULPRITS_MEMORY, ""), "");
        ck_assert_uint_eq(t.fleet->culprits[0].at, 0);
        ck_assert_str_ne(reported(CULPRITS_MEMORY, "A"), "");
}

TEST(the_classes_with_the_most_jobs_come_first_and_the_rest_is_counted)
{
        send_heartbeat(1, 0);
        golden_expect("events", "culprits: the classes with the most jobs come first and the rest is counted",
                      reported_memory("G|F|E|D|C|B|A"));
        golden_expect("events",
                      "culprits: the classes with the most jobs come first and the rest is counted, 2",
                      reported_memory("G|G|F|E|E|E|D|C|B|A|A"));
        ck_assert_uint_eq(t.fleet->culprits[0].classes.n, JOB_CLASSES_MAX);
        ck_assert_uint_eq(t.fleet->culprits[0].classes.more, 2);
        ck_assert_str_eq(t.fleet->culprits[0].classes.list[2].name, "G");
}

TEST(names_of_classes_are_cut_and_made_printable)
{
        char classes[4096] = "", expect[JOB_CLASS_MAX];

        send_heartbeat(1, 0);
        golden_expect("events", "culprits: names of classes are cut and made printable",
                      reported_memory("A\nB\x1b[31m\xff|\xc3\xa4"));
        for (unsigned i = 0; i < 7; i++) {
                char name[501];

                /* An odd start has the cut fall within a character. */
                memset(name, '\0', sizeof(name));
                name[0] = (char)('a' + i);
                for (size_t j = 1; j + 1 < sizeof(name) - 1; j += 2)
                        memcpy(&name[j], "\xc3\xa4", 2);
                snprintf(classes + strlen(classes), sizeof(classes) - strlen(classes), "%s|", name);
        }
        const char *text = reported_memory(classes);
        ck_assert_uint_lt(strlen(text), CULPRITS_TEXT_MAX - 100);
        ck_assert_str_eq(text + strlen(text) - strlen(" and 2 more"), " and 2 more");
        memset(expect, '\0', sizeof(expect));
        expect[0] = 'a';
        for (size_t j = 1; j + 2 < sizeof(expect); j += 2)
                memcpy(&expect[j], "\xc3\xa4", 2);
        expect[sizeof(expect) - 2] = '?';
        ck_assert_str_eq(t.fleet->culprits[0].classes.list[0].name, expect);
}

TEST(a_class_without_a_name_is_one_too)
{
        struct job jobs[] = {{.class = (char *)""}, {.class = (char *)"A"}};
        const struct job_list list = {.jobs = jobs, .n_jobs = 2};

        culprits_observe(t.fleet, worker, CULPRITS_MEMORY, &list, t.now);
        ck_assert_ptr_nonnull(strstr(test_event_text(&t, EVENT_CULPRITS), "running ?, A"));
}

TEST(the_last_ones_are_kept_the_newest_first_and_outlive_a_reload)
{
        char class[] = "A";

        send_heartbeat(1, MIB(100));
        for (unsigned i = 0; i < CULPRITS_KEPT + 2; i++, class[0]++)
                (void)reported(CULPRITS_MEMORY, class);
        ck_assert_int_eq(world_reload(t.world, &t.settings, NULL, t.now), 0);
        for (unsigned i = 0; i < CULPRITS_KEPT; i++)
                ck_assert_int_eq(t.fleet->culprits[i].classes.list[0].name[0],
                                 'A' + CULPRITS_KEPT + 1 - (int)i);
}

TEST(the_growth_begins_at_the_first_heartbeat_and_at_each_without_a_job)
{
        observe_memory(worker, MIB(10), t.now);
        ck_assert_uint_eq(worker->memory.mark_at, 0);
        ck_assert_uint_eq(send_heartbeat_after(5, 2, MIB(100)), MIB(100));
        ck_assert_uint_eq(send_heartbeat_after(5, 2, MIB(200)), MIB(100));
        ck_assert_uint_eq(send_heartbeat_after(5, 0, MIB(150)), MIB(150));
        ck_assert_uint_eq(worker->memory.mark_at, t.now);
        /* It took it over and has ended. */
        ck_assert_uint_eq(send_heartbeat_after(5, 0, MIB(501)), MIB(150));
        t.fleet_settings.memory_threshold = 0;
        t.fleet_settings.memory_limit = MIB(500);
        ck_assert_uint_eq(send_heartbeat_after(5, 0, MIB(501)), MIB(150));
        ck_assert_uint_eq(send_heartbeat_after(5, 0, MIB(500)), MIB(500));
        /* Another process: of that one nothing is known, and then that it begins over the limit. */
        observe_memory(worker, MIB(700), t.now);
        observe_heartbeat_process(worker, worker->process.pid + 1, 1, t.now);
        golden_expect("events",
                      "culprits: the growth begins at the first heartbeat and at each without a job",
                      reported(CULPRITS_MEMORY, ""));
        ck_assert_uint_eq(send_heartbeat_after(5, 0, MIB(600)), MIB(600));
}

/* The worker is over the threshold by its resident memory, and below it by its proportional share. */
TEST(the_share_of_a_forked_worker_is_for_the_limits_alone)
{
        struct trend trend = {0};

        worker->process.forked = true;
        send_heartbeat(0, 0);
        for (unsigned i = 0; i < 5; i++, pass(3600)) {
                observe_shared_memory(worker, MIB(480 + 20 * i), MIB(i < 2 ? 480 + 20 * i : 200), t.now);
                trend_add(&trend, MIB(480 + 20 * i), t.now);
                /* An idle heartbeat moves the mark: the worker is not over a limit. */
                send_heartbeat(0, 0);
                ck_assert_uint_eq(worker->memory.mark_bytes, MIB(480 + 20 * i));
        }
        ck_assert(!worker->memory.over_threshold);
        ck_assert_int_eq(worker->memory.breach, BREACH_NONE);
        ck_assert_mem_eq(&worker->memory.trend, &trend, sizeof(trend));
        ck_assert_uint_eq(worker->memory.bytes, MIB(560));

        observe_shared_memory(worker, MIB(800), MIB(440), t.now);
        ck_assert_str_eq(reported_memory("A"), "grew by 240M to 800M within 1h, running A");
        for (unsigned i = 0; i < 3; i++)
                observe_shared_memory(worker, MIB(900), MIB(501), t.now);
        ck_assert(worker->memory.over_threshold);
        ck_assert_uint_eq(send_heartbeat(0, 0), MIB(560));
        ck_assert_ptr_nonnull(strstr(test_event_text(&t, EVENT_MEMORY_OVER), " uses 501M,"));
}

TEST(a_heartbeat_that_does_not_report_its_memory_has_the_last_sample)
{
        send_heartbeat(0, 0);
        ck_assert_uint_eq(worker->memory.mark_at, 0);
        ck_assert_uint_eq(poll_after(5, MIB(120)), MIB(120));
        ck_assert_uint_eq(look(MIB(130)), MIB(120));
        ck_assert_uint_eq(send_heartbeat_after(5, 0, 0), MIB(130));
}

TEST(an_adopted_one_has_grown_since_then)
{
        const struct worker known = {.index = 7,
                                     .generation = 1,
                                     .process.pid = 50,
                                     .process.start = 5,
                                     .state = WORKER_ACTIVE,
                                     .heartbeat.seen = true};

        worker = observe_adopted(t.fleet, &known, 5, 0, t.now);
        ck_assert_ptr_nonnull(worker);
        ck_assert_uint_eq(worker->memory.mark_at, 0);
        ck_assert_uint_eq(look(MIB(300)), MIB(300));
        ck_assert_uint_eq(worker->memory.mark_at, t.now);
}

TEST(what_an_earlier_sqmgr_reported_of_is_not_asked_for_again)
{
        struct worker known = {.index = 7,
                               .generation = 1,
                               .process.pid = 50,
                               .process.start = 5,
                               .state = WORKER_QUIET,
                               .reason = REASON_MEMORY,
                               .heartbeat.seen = true};

        t.fleet_settings.memory_limit = MIB(600);
        worker = observe_adopted(t.fleet, &known, 5, 0, t.now);
        observe_memory(worker, MIB(601), t.now);
        ck_assert_uint_eq(worker->memory.breach_at, 0);

        known = (struct worker){.index = 8,
                                .generation = 1,
                                .process.pid = 51,
                                .process.start = 5,
                                .state = WORKER_ACTIVE,
                                .memory.over_threshold = true,
                                .heartbeat.seen = true};
        worker = observe_adopted(t.fleet, &known, 5, 0, t.now);
        for (unsigned i = 0; i < 4; i++)
                observe_memory(worker, MIB(501), t.now);
        ck_assert_uint_eq(worker->memory.breach_at, 0);
        observe_memory(worker, MIB(601), t.now);
        ck_assert_uint_eq(worker->memory.breach_at, t.now);
}

/* Three samples over the threshold; beats come with the first of them, and later. */
TEST(over_the_threshold_a_heartbeat_from_after_the_first_sample_is_waited_for)
{
        send_heartbeat(1, MIB(100));
        for (unsigned i = 0; i < 2; i++) {
                poll_after(5, MIB(501));
                ck_assert(!culprits_take(worker));
        }
        poll_after(5, MIB(501));
        ck_assert_uint_eq(test_events(&t, EVENT_MEMORY_OVER), 1);
        ck_assert(!culprits_take(worker));
        send_heartbeat_after(5, 1, MIB(501));
        ck_assert(culprits_take(worker));
        ck_assert(!culprits_take(worker));
        poll_after(5, MIB(501));
        send_heartbeat(1, MIB(501));
        ck_assert(!culprits_take(worker));
}

TEST(where_such_a_heartbeat_has_come_by_then_nothing_is_waited_for)
{
        send_heartbeat(1, MIB(100));
        for (unsigned i = 0; i < 3; i++) {
                ck_assert(!culprits_take(worker));
                poll_after(5, MIB(501));
                if (i == 1)
                        send_heartbeat(1, MIB(501));
        }
        ck_assert(culprits_take(worker));
}

/* What is read together with the sample was written before it. */
TEST(over_the_limit_the_heartbeat_that_is_read_with_the_sample_is_too_old)
{
        t.fleet_settings.memory_limit = MIB(600);
        send_heartbeat(0, MIB(100));
        pass(5);
        observe_memory(worker, MIB(601), t.now);
        send_heartbeat(0, MIB(100));
        ck_assert(!culprits_take(worker));
        poll_after(5, MIB(601));
        ck_assert(!culprits_take(worker));
        send_heartbeat(1, MIB(601));
        ck_assert(culprits_take(worker));
        /* The threshold below it is no news. */
        poll_after(5, MIB(601));
        ck_assert_uint_eq(test_events(&t, EVENT_MEMORY_OVER), 1);
        poll_after(5, MIB(400));
        poll_after(5, MIB(601));
        send_heartbeat(1, MIB(601));
        ck_assert(!culprits_take(worker));
}

TEST(over_the_threshold_and_later_over_the_limit_it_is_asked_for_twice)
{
        t.fleet_settings.memory_limit = MIB(600);
        send_heartbeat(1, MIB(100));
        for (unsigned i = 0; i < 3; i++) {
                poll_after(5, MIB(501));
                send_heartbeat(1, MIB(501));
        }
        ck_assert(culprits_take(worker));
        poll_after(5, MIB(601));
        ck_assert(!culprits_take(worker));
        send_heartbeat_after(5, 1, MIB(601));
        ck_assert(culprits_take(worker));
}

TEST(a_heartbeat_that_comes_much_later_reports_nothing_of_then)
{
        t.fleet_settings.memory_limit = MIB(600);
        send_heartbeat(1, MIB(100));
        look(MIB(601));
        poll_after(41, MIB(601));
        send_heartbeat(1, MIB(601));
        ck_assert(!culprits_take(worker));
        send_heartbeat_after(5, 1, MIB(601));
        ck_assert(!culprits_take(worker));
}

TEST(a_heartbeat_from_a_time_of_doubt_is_not_waited_for)
{
        t.fleet_settings.memory_limit = MIB(600);
        send_heartbeat(1, MIB(100));
        look(MIB(601));
        pass(5);
        t.world->doubt.since = t.now;
        send_heartbeat_after(1, 1, MIB(601));
        ck_assert(!culprits_take(worker));
        send_heartbeat_after(5, 1, MIB(601));
        ck_assert(culprits_take(worker));
}

#define SIGNALLED(n) ((struct exit_status){.known = true, .status = n, .by_signal = true})
#define EXITED(n)    ((struct exit_status){.known = true, .status = n})
#define UNKNOWN      ((struct exit_status){.known = false})

static bool killed(enum worker_state state, usec_t killed_at, struct exit_status exit)
{
        const struct worker dead = {.fleet = t.fleet, .state = state, .orders.killed_at = killed_at};

        return culprits_oom_killed(t.world, &dead, &exit, t.now);
}

TEST(a_kill_that_sqmgr_did_not_send_is_the_oom_killers_where_that_was_at_work)
{
        observe_oom_kills(t.world, 7, t.now);
        ck_assert(!killed(WORKER_ACTIVE, 0, SIGNALLED(SIGKILL)));
        pass(5);
        observe_oom_kills(t.world, 7, t.now);
        ck_assert(!killed(WORKER_ACTIVE, 0, SIGNALLED(SIGKILL)));
        observe_oom_kills(t.world, 8, t.now);
        ck_assert(killed(WORKER_ACTIVE, 0, SIGNALLED(SIGKILL)));
        ck_assert(killed(WORKER_STOPPING, 0, SIGNALLED(SIGKILL)));
        ck_assert(killed(WORKER_ACTIVE, 0, UNKNOWN));
        ck_assert(killed(WORKER_QUIET, 0, UNKNOWN));
        ck_assert(!killed(WORKER_STOPPING, 0, UNKNOWN));
        ck_assert(!killed(WORKER_STOPPING, t.now, SIGNALLED(SIGKILL)));
        ck_assert(!killed(WORKER_ACTIVE, 0, SIGNALLED(SIGTERM)));
        ck_assert(!killed(WORKER_ACTIVE, 0, EXITED(SIGKILL)));
        /* It takes a while until all of it is gone. */
        pass(10);
        observe_oom_kills(t.world, 8, t.now);
        ck_assert(killed(WORKER_ACTIVE, 0, SIGNALLED(SIGKILL)));
        pass(1);
        ck_assert(!killed(WORKER_ACTIVE, 0, SIGNALLED(SIGKILL)));
}

TEST_MAIN("culprits", .each = {setup, teardown})
