/* SPDX-License-Identifier: MIT */
/* Tests of what is read back of workers that died (daemon/workers/exit_log.h) where the journal holds
 * nothing of them; tests/e2e/journal.bats has lines. */
#include "base/fd.h"
#include "daemon/workers/exit_log.h"
#include "io/launch.h"
#include "runtime.h"
#include <glob.h>
#include <sys/mman.h>

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

/* Any thread of this process may be its parent. */
static int child(void)
{
        glob_t files;
        int pid = 0;

        ck_assert_int_eq(glob("/proc/self/task/*/children", 0, NULL, &files), 0);
        for (size_t i = 0; i < files.gl_pathc && pid == 0; i++) {
                FILE *children = fopen(files.gl_pathv[i], "re");

                ck_assert_ptr_nonnull(children);
                if (fscanf(children, "%d", &pid) != 1)
                        pid = 0;
                ck_assert_int_eq(fclose(children), 0);
        }
        globfree(&files);
        return pid;
}

TEST(a_reader_that_is_killed_has_no_lines)
{
        struct fleet *web = world_fleet(runtime_world, "web");

        web->lines_token = read_of("web");
        ck_assert_int_eq(kill(child(), SIGKILL), 0);
        run_until(web->lines_token == 0);
}

/* Expects this log tail of a worker of the fleet that has written logged to its file. */
static void expect_tail(const char *fleet, const char *logged, const char *lines)
{
        _cleanup_close_ int fd = memfd_create("log", MFD_CLOEXEC);
        _cleanup_proc_ struct proc *self = NULL;
        struct launch_report report = LAUNCH_REPORT_INIT;
        struct exit_status exit = {.known = true};
        struct quoted text;

        ck_assert_int_eq(proc_open(getpid(), &self), 0);
        const struct exit_log_source dead = {
                .fleet = world_fleet(runtime_world, fleet), .main = self, .pids = {getpid(), 7}};
        ck_assert_int_eq(fd_write_all(fd, logged, strlen(logged)), 0);
        report.log_fd = fd;
        ck_assert_int_eq(exit_log_add(&runtime, &dead, &report, false, &text, &exit), 0);
        ck_assert_str_eq(quoted_reveal(exit.log_tail), lines);
}

TEST(lines_of_others_are_not_its_own)
{
        struct fleet *own = world_fleet(runtime_world, "own");
        const struct worker alive = {.index = 1, .state = WORKER_ACTIVE},
                            other = {.index = 2, .state = WORKER_ACTIVE};

        ck_assert_ptr_nonnull(fleet_add_worker(own, &alive));
        expect_tail("own", "no database.yml\n", "no database.yml");
        /* No other worker writes to the log: the process is a child of the command. */
        expect_tail("own", "pid=8 tid=b mine\n", "pid=8 tid=b mine");
        ck_assert_ptr_nonnull(fleet_add_worker(own, &other));
        expect_tail("own", "pid=7 tid=a mine\npid=8 tid=b theirs\n", "pid=7 tid=a mine");
        expect_tail("own", "pid=8 tid=b theirs\nno database.yml\n", "");
        expect_tail("own", "no database.yml\npid=7 tid=a mine\n", "pid=7 tid=a mine");
        expect_tail("own", "pid=8 tid=b theirs\n", "");
        /* The other one has failed since this one was started. */
        own->workers[1]->state = WORKER_GONE;
        own->crash.failed_at = 1;
        expect_tail("own", "theirs\n", "");
        own->crash.failed_at = 0;
        expect_tail("own", "mine\n", "mine");
        /* Without processes, these workers must not be ended with the fleet. */
        own->workers[0]->state = own->workers[1]->state = WORKER_GONE;
        fleet_reap(own, NULL);
}

TEST(a_fleet_that_is_gone_by_then_is_not_reported)
{
        ck_assert_uint_ne(read_of("own"), read_of("web"));
        runtime_settings->fleets[0]->removed = true;
        world_forget_removed(runtime_world);
        ck_assert_ptr_null(world_fleet(runtime_world, "web"));
        links_join(&runtime);
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
