/* SPDX-License-Identifier: MIT */
/* What every unit test needs: Check, tests that register themselves, and a main() in one line. */
#pragma once

#include "../guard.h"
#include "base/macro.h"
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

/* Check notes each assertion that holds by a write to a file, which took a sixth of the processor time of all
 * tests. Where a test crashes is for the sanitizers and a debugger to say. */
#define _mark_point(file, line) ((void)0)

/* Runs the suite. Returns the exit status for main(). */
static inline int unit_main(Suite *suite)
{
        if (!guard_start()) {
                fprintf(stderr, "the guard of what tests leave behind could not be started\n");
                return EXIT_FAILURE;
        }
        SRunner *runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        int failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

struct unit_fixture {
        void (*setup)(void), (*teardown)(void);
};

/* How the tests of a file are run. */
struct unit_options {
        struct unit_fixture each; /* of the tests above the first TEST_FIXTURE() */
        struct unit_fixture once; /* around the tests of one fixture */
        double timeout_seconds;   /* of each test; 0: CK_DEFAULT_TIMEOUT, which is 60 if unset */
        bool (*is_missing)(void); /* reports what the tests need and this machine lacks; may be NULL */
};

/* A test of this file, or a fixture. */
struct unit_entry {
        int line;
        const TTest *test; /* NULL: a fixture */
        int n;             /* runs of the test, with _i from 0 */
        int exit_status;   /* with which each run ends */
        struct unit_fixture fixture;
};

static struct unit_entry unit_entries[128];
static size_t unit_entries_n;

/* Keeps the entries in the order of the file. */
static inline void unit_add(struct unit_entry entry)
{
        size_t at = unit_entries_n++;

        if (at == ELEMENTSOF(unit_entries))
                abort();
        for (; at > 0 && unit_entries[at - 1].line > entry.line; at--)
                unit_entries[at] = unit_entries[at - 1];
        unit_entries[at] = entry;
}

static inline TCase *unit_start_case(Suite *suite, const struct unit_options *options,
                                     const struct unit_fixture *each)
{
        TCase *tests = tcase_create("tests");

        if (options->timeout_seconds > 0)
                tcase_set_timeout(tests, options->timeout_seconds);
        tcase_add_unchecked_fixture(tests, options->once.setup, options->once.teardown);
        tcase_add_checked_fixture(tests, each->setup, each->teardown);
        suite_add_tcase(suite, tests);
        return tests;
}

/* Runs all tests of this file. Returns the exit status for main(): 77 is a skipped test to Automake. */
static inline int unit_run(const char *name, const struct unit_options *options)
{
        if (options->is_missing && options->is_missing())
                return 77;
        (void)setenv("CK_DEFAULT_TIMEOUT", "60", 0);
        Suite *suite = suite_create(name);
        TCase *tests = unit_start_case(suite, options, &options->each);
        for (size_t i = 0; i < unit_entries_n; i++)
                if (!unit_entries[i].test)
                        tests = unit_start_case(suite, options, &unit_entries[i].fixture);
                else
                        tcase_add_loop_exit_test(tests, unit_entries[i].test, unit_entries[i].exit_status, 0,
                                                 unit_entries[i].n);
        return unit_main(suite);
}

/* A test that registers itself. TEST_LOOP() runs n times, with _i from 0. TEST_EXITS() passes if its process
 * exits with the status. */
#define TEST(name)               TEST_ADD(name, .n = 1)
#define TEST_LOOP(name, n_)      TEST_ADD(name, .n = (int)(n_))
#define TEST_EXITS(name, status) TEST_ADD(name, .n = 1, .exit_status = (status))
#define TEST_ADD(name, ...)                                                                                  \
        static void name##_run(int _i);                                                                      \
        START_TEST(name)                                                                                     \
        {                                                                                                    \
                name##_run(_i);                                                                              \
        }                                                                                                    \
        END_TEST                                                                                             \
        static void __attribute__((constructor)) name##_add(void)                                            \
        {                                                                                                    \
                unit_add((struct unit_entry){.line = __LINE__, .test = name, __VA_ARGS__});                  \
        }                                                                                                    \
        static void name##_run(int _i _unused_)

/* The fixture of the tests below it. */
#define TEST_FIXTURE(setup_, teardown_)            TEST_FIXTURE_AT(setup_, teardown_, __COUNTER__)
#define TEST_FIXTURE_AT(setup_, teardown_, number) TEST_FIXTURE_ADD(setup_, teardown_, number)
#define TEST_FIXTURE_ADD(setup_, teardown_, number)                                                          \
        static void __attribute__((constructor)) unit_add_fixture_##number(void)                             \
        {                                                                                                    \
                unit_add((struct unit_entry){.line = __LINE__, .fixture = {setup_, teardown_}});             \
        }

/* The main() of a file whose tests register themselves. The arguments behind the name are fields of struct
 * unit_options. */
#define TEST_MAIN(name, ...)                                                                                 \
        int main(void)                                                                                       \
        {                                                                                                    \
                return unit_run(name, &(struct unit_options){__VA_ARGS__});                                  \
        }

/* Writes a file below dir, and makes the folders that it needs. */
static inline void unit_write_file(const char *dir, const char *path, const char *text)
{
        char full[512];

        snprintf(full, sizeof(full), "%s/%s", dir, path);
        for (char *slash = strchr(full + strlen(dir) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                ck_assert(mkdir(full, 0755) == 0 || errno == EEXIST);
                *slash = '/';
        }
        FILE *file = fopen(full, "we");
        ck_assert_ptr_nonnull(file);
        ck_assert_int_ge(fputs(text, file), 0);
        ck_assert_int_eq(fclose(file), 0);
}

/* Leaves so many descriptors free, until *before is the limit again. */
static inline void unit_leave_descriptors(unsigned n, struct rlimit *before)
{
        struct rlimit limit;
        int fd = 0;

        ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, before), 0);
        for (unsigned free = 0; free < n || fcntl(fd, F_GETFD) >= 0; fd++)
                free += fcntl(fd, F_GETFD) < 0;
        limit = (struct rlimit){.rlim_cur = (rlim_t)fd, .rlim_max = before->rlim_max};
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Removes a folder made with mkdtemp() and all that is in it. */
static inline void unit_remove_tree(const char *dir)
{
        char command[512];

        snprintf(command, sizeof(command), "rm -rf -- '%s'", dir);
        ck_assert_int_eq(system(command), 0);
}

/* Makes a folder, and writes its name. */
static inline void unit_make_folder(char *ret)
{
        strcpy(ret, "/tmp/sqmgr-test-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(ret));
}

/* Returns a socket that listens there. flags: SOCK_NONBLOCK, or 0. */
static inline int unit_listen(const char *path, int flags)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", path);
        ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
        ck_assert_int_eq(listen(fd, 16), 0);
        return fd;
}

static inline pid_t unit_fork(void)
{
        pid_t pid = fork();

        ck_assert_int_ge(pid, 0);
        return pid;
}

/* Forks a process that ends with this one at the latest. */
static inline pid_t unit_fork_bound(void)
{
        pid_t parent = getpid(), pid = unit_fork();

        if (pid == 0) {
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (getppid() != parent)
                        _exit(1);
        }
        return pid;
}

/* Kills a child, and waits for its end. */
static inline void unit_kill(pid_t pid)
{
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
