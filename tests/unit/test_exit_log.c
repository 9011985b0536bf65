/* SPDX-License-Identifier: MIT */
/* Tests of what is read back of workers that died (daemon/workers/exit_log.h) where the journal holds
 * nothing of them; tests/e2e/journal.bats has lines. */
#include "daemon/workers/exit_log.h"
#include "model/exit_status.h"
#include "privileged/launch.h"
#include "runtime.h"
#include <unistd.h>

static void setup(void)
{
        ck_assert_int_ge(sd_event_new(&event), 0);
        runtime_start(RUNTIME_REDIS "[fleet:web]\ncommand=/bin/true\nlog=journal\n"
                                    "[fleet:own]\ncommand=/bin/true\nlog=/var/log/sqmgr-test\n"
                                    "[fleet:plain]\ncommand=/bin/true\nlog=inherit\n");
}

static void teardown(void)
{
        exit_log_forget(&runtime);
        runtime_end();
        event = sd_event_unref(event);
}

/* One that nobody has logged as since it was started. */
static uint64_t read_of(const char *fleet)
{
        const struct exit_log_source dead = {.fleet = world_fleet(runtime_world, fleet),
                                             .pids = {getpid()},
                                             .since = clock_now(CLOCK_MONOTONIC)};
        const struct launch_report report = LAUNCH_REPORT_INIT;
        struct exit_status exit = {.known = false};
        struct quoted lines;

        exit_log_add(&runtime, &dead, &report, false, &lines, &exit);
        return exit.lines_token;
}

TEST(the_answer_ends_the_wait_for_the_lines)
{
        struct fleet *web = world_fleet(runtime_world, "web");
        unsigned turns = runtime_wakeups;

        web->lines_token = read_of("web");
        ck_assert_uint_ne(web->lines_token, 0);
        run_until(web->lines_token == 0);
        ck_assert_ptr_null(runtime.exit_log);
        run_until(runtime_wakeups > turns);
}

TEST(each_death_has_an_answer_of_its_own)
{
        struct fleet *web = world_fleet(runtime_world, "web");
        uint64_t first = read_of("web");

        web->lines_token = read_of("web");
        ck_assert_uint_ne(web->lines_token, first);
        web->lines_token = first;
        run_until(!runtime.exit_log);
        ck_assert_uint_eq(web->lines_token, 0);
}

TEST(a_log_that_is_no_journal_is_not_read)
{
        /* Here stderr is none. */
        int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

        ck_assert_int_ge(dup2(fd, STDERR_FILENO), 0);
        ck_assert_uint_eq(read_of("own"), 0);
        ck_assert_uint_eq(read_of("plain"), 0);
        ck_assert_ptr_null(runtime.exit_log);
        close(fd);
}

TEST(when_many_die_at_once_some_are_enough)
{
        unsigned n = 0;

        while (n < 100 && read_of("web") != 0)
                n++;
        ck_assert_uint_eq(n, 4);
        run_until(!runtime.exit_log);
        ck_assert_uint_ne(read_of("web"), 0);
}

TEST(a_fleet_that_is_gone_by_then_is_not_reported)
{
        ck_assert_uint_ne(read_of("own"), read_of("web"));
        runtime_settings->fleets[0]->removed = true;
        world_forget_removed(runtime_world);
        ck_assert_ptr_null(world_fleet(runtime_world, "web"));
        links_join(&runtime.links);
        run_until(!runtime.exit_log);
}

TEST(what_is_forgotten_is_not_answered)
{
        struct fleet *web = world_fleet(runtime_world, "web");

        web->lines_token = read_of("web");
        exit_log_forget(&runtime);
        ck_assert_ptr_null(runtime.exit_log);
        /* Its child ends by itself, and nobody hears of it. */
        ck_assert_int_gt(wait(NULL), 0);
        while (sd_event_run(event, 0) > 0)
                ;
        ck_assert_uint_ne(web->lines_token, 0);
}

TEST_MAIN("last_words", .each = {setup, teardown})
