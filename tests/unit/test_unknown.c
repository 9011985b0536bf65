/* SPDX-License-Identifier: MIT */
/* Tests of daemon/takeover/persist.h with real processes, which a file lists as the control group does. */
/* promises: P4 */
#include "daemon/takeover/persist.h"
#include "observe/observe.h"
#include "unit.h"
#include "world.h"
#include <fcntl.h>
#include <sys/wait.h>

static struct test_world t;
static char procs[] = "/tmp/sqmgr-unknown.XXXXXX";
static pid_t pids[2]; /* a leader of a session, and its child */

static void setup(void)
{
        int pair[2];

        test_world_open(&t, 1);
        strcpy(procs, "/tmp/sqmgr-unknown.XXXXXX");
        close(mkstemp(procs));
        ck_assert_int_eq(pipe2(pair, O_CLOEXEC), 0);
        pids[0] = fork();
        if (pids[0] == 0) {
                setsid();
                pid_t child = fork();
                if (child > 0)
                        (void)!write(pair[1], &child, sizeof(child));
                for (;;)
                        pause();
        }
        ck_assert_int_eq(read(pair[0], &pids[1], sizeof(pids[1])), sizeof(pids[1]));
        close(pair[0]);
        close(pair[1]);
        FILE *out = fopen(procs, "we");
        fprintf(out, "%d\n%d\n", (int)pids[0], (int)pids[1]);
        fclose(out);
}

static void teardown(void)
{
        ck_assert_int_eq(kill(pids[1], SIGKILL), 0);
        ck_assert_int_eq(kill(pids[0], SIGKILL), 0);
        ck_assert_int_eq(waitpid(pids[0], NULL, 0), pids[0]);
        unlink(procs);
        test_world_close(&t);
}

static uint64_t start_of(pid_t pid)
{
        _cleanup_proc_ struct proc *proc = NULL;

        ck_assert_int_eq(proc_open(pid, &proc), 0);
        return proc_start_time(proc);
}

static size_t count(uint64_t before)
{
        struct unknown unknown = {0};

        unknown_read(procs, before, t.world, &unknown);
        for (size_t i = 0; i < unknown.n; i++) {
                ck_assert_int_eq(unknown.list[i].pid, pids[i]);
                ck_assert_uint_eq(unknown.list[i].start, start_of(pids[i]));
        }
        return unknown.n;
}

TEST(a_process_from_before_sqmgr_that_belongs_to_no_worker_is_unknown)
{
        ck_assert_uint_eq(count(UINT64_MAX), 2);
        ck_assert_uint_eq(count(start_of(pids[0])), 0);
        ck_assert_int_eq(truncate(procs, 0), 0);
        ck_assert_uint_eq(count(UINT64_MAX), 0);
        ck_assert_int_eq(unlink(procs), 0);
        ck_assert_uint_eq(count(UINT64_MAX), 0);
}

TEST(a_worker_a_template_and_what_descends_from_them_is_known)
{
        struct worker *worker = test_spawn(&t);

        worker->process.pid = pids[0];
        ck_assert_uint_eq(count(UINT64_MAX), 0);
        worker->process.pid = getppid();
        ck_assert_uint_eq(count(UINT64_MAX), 0);
        worker->process.pid = 1;
        worker->process.heartbeat_pid = pids[0];
        ck_assert_uint_eq(count(UINT64_MAX), 0);
        worker->process.heartbeat_pid = 0;
        ck_assert_uint_eq(count(UINT64_MAX), 2);
        t.fleet->templates[0].pid = pids[0];
        ck_assert_uint_eq(count(UINT64_MAX), 0);
        t.fleet->templates[0].pid = 0;
}

TEST_MAIN("unknown", .each = {setup, teardown})
