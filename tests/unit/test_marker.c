/* SPDX-License-Identifier: MIT */
/* Tests of io/marker.h: the markers in the name of a descriptor. */
/* promises: P4 */
#include "base/environment.h"
#include "io/marker.h"
#include "io/proc.h"
#include "unit.h"
#include <fcntl.h>
#include <sys/resource.h>

static struct environment environment;
static struct proc *self;

static void setup(void)
{
        ck_assert_int_eq(environment_put(&environment, "SQMGR_INSTANCE=0123456789abcdef"), 0);
        ck_assert_int_eq(environment_put(&environment, "SQMGR_WORKER=web/3"), 0);
        ck_assert_int_eq(environment_put(&environment, "SQMGR_START=12345"), 0);
        ck_assert_int_eq(proc_open(getpid(), &self), 0);
}

static void teardown(void)
{
        (void)close(MARKER_FD);
        self = proc_close(self);
        environment_done(&environment);
}

static void put(void)
{
        char name[MARKER_MAX];

        marker_name(&environment, name);
        marker_put(name);
}

TEST(what_is_put_is_read)
{
        char text[MARKER_MAX];

        ck_assert_int_eq(marker_read(self, text), 0);
        put();
        ck_assert_int_eq(fcntl(MARKER_FD, F_GETFD), 0);
        ssize_t length = marker_read(self, text);
        ck_assert_int_gt(length, 0);
        ck_assert_str_eq(environment_find(text, (size_t)length, "SQMGR_INSTANCE"), "0123456789abcdef");
        ck_assert_str_eq(environment_find(text, (size_t)length, "SQMGR_WORKER"), "web/3");
        ck_assert_str_eq(environment_find(text, (size_t)length, "SQMGR_GENERATION"), "");
        ck_assert_str_eq(environment_find(text, (size_t)length, "SQMGR_START"), "12345");
}

TEST(a_descriptor_with_another_name_and_a_limit_below_it_mean_no_marker)
{
        struct rlimit before, low;
        char text[MARKER_MAX];

        ck_assert_int_eq(dup2(STDOUT_FILENO, MARKER_FD), MARKER_FD);
        ck_assert_int_eq(marker_read(self, text), 0);
        close(MARKER_FD);
        ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
        low = (struct rlimit){.rlim_cur = MARKER_FD, .rlim_max = before.rlim_max};
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
        put();
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        ck_assert_int_eq(marker_read(self, text), 0);
}

TEST_MAIN("marker", .each = {setup, teardown})
