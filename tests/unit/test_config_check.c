/* SPDX-License-Identifier: MIT */
/* Tests of daemon/api/config_check.h, with scripts that stand for the installed sqmgr. */
#include "daemon/api/config_check.h"
#include "unit.h"
#include <sys/wait.h>

static char dir[] = "/tmp/sqmgr-test-XXXXXX";
static char program[64], config_path[64];
static struct runtime runtime;
static struct config_check check;
static usec_t now;

static void setup(void)
{
        unit_make_folder(dir);
        snprintf(program, sizeof(program), "%s/sqmgr", dir);
        snprintf(config_path, sizeof(config_path), "%s/ini", dir);
        unit_write_file(dir, "ini", "");
        runtime = (struct runtime){0};
        ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &runtime.nofile), 0);
        check = (struct config_check){.runtime = &runtime, .program = program, .config_path = config_path};
        now = USEC_PER_SEC;
        config_check_accept(&check, now);
}

static void teardown(void)
{
        config_check_end(&check);
        ck_assert_ptr_null(runtime.children.first);
        unit_remove_tree(dir);
}

static void start(const char *command)
{
        char script[128];

        snprintf(script, sizeof(script), "#!/bin/sh\n%s\n", command);
        unit_write_file(dir, "sqmgr", script);
        ck_assert_int_eq(chmod(program, 0700), 0);
        config_check_doubt(&check);
        (void)config_check_refused(&check, now);
        ck_assert_int_gt(check.child.pid, 0);
}

static void reap(void)
{
        siginfo_t info;

        ck_assert_int_eq(waitid(P_PID, (id_t)check.child.pid, &info, WEXITED | WNOWAIT), 0);
        ck_assert(children_reap(&runtime.children, check.child.pid));
}

static bool is_refused_after(const char *command)
{
        start(command);
        reap();
        return config_check_refused(&check, now);
}

TEST(only_the_exit_status_for_a_bad_config_refuses)
{
        ck_assert(!is_refused_after("exit 127"));
        ck_assert(!is_refused_after("kill -9 $$"));
        ck_assert(is_refused_after("exit 78"));
        /* Nothing is known: the verdict stays. */
        ck_assert(is_refused_after("exit 127"));
        ck_assert(is_refused_after("kill -9 $$"));
        ck_assert(!is_refused_after("exit 0"));
}

TEST(no_start_is_rehearsed)
{
        ck_assert(is_refused_after("[ \"$*\" = \"-c ${0%/sqmgr}/ini --print-config\" ] && exit 78"));
}

TEST(a_check_that_does_not_end_is_killed_and_refuses_nothing)
{
        start("exec sleep 1000");
        now += USEC_PER_MIN;
        ck_assert_ptr_null(config_check_refused(&check, now));
        reap();
        ck_assert_ptr_null(config_check_refused(&check, now));
}

TEST(a_reload_ends_a_check_of_the_file_before)
{
        start("exec sleep 1000");
        config_check_accept(&check, now);
        ck_assert_int_eq(check.child.pid, 0);
        ck_assert_ptr_null(config_check_refused(&check, now));
        ck_assert_int_eq(check.child.pid, 0);
}

TEST_MAIN("config_check", .each = {setup, teardown})
