/* SPDX-License-Identifier: MIT */
/* Is a worker told from its processes to run a job, to wait for one, or to be taking one
 * (daemon/workers/execute.h)?
 */
/* promises: P1 */
#include "daemon/workers/execute.h"
#include "observe/observe.h"
#include "runtime_folder.h"

static struct process *process;
static usec_t now;

static void setup(void)
{
        runtime_folder_open();
        ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
        now = 100 * USEC_PER_SEC;
}

static bool has_file(const char *name)
{
        char path[64];

        snprintf(path, sizeof(path), "%s/%s", dir, name);
        return access(path, F_OK) == 0;
}

/* Starts a worker that is this script, and waits for the file `up` that it makes in $d. */
static void start(const char *script)
{
        char text[1024];

        snprintf(text, sizeof(text), "export d=%s\n%s\n", dir, script);
        unit_write_file(dir, "script", text);
        snprintf(text, sizeof(text), RUNTIME_REDIS "[fleet:web]\ncommand=/bin/sh %s/script\n", dir);
        runtime_start(text);
        struct worker *worker = runtime_start_worker();
        ck_assert_ptr_nonnull(worker);
        process = worker->handle;
        observe_heartbeat_process(worker, worker->process.pid, worker->process.start, now);
        while (!has_file("up"))
                ck_assert_int_ge(sd_event_run(event, 20 * USEC_PER_MSEC), 0);
}

static void await_sleep(bool wanted)
{
        bool asleep = !wanted;
        uint64_t times;

        while (asleep != wanted)
                ck_assert_int_eq(proc_sleeps(process->main, &asleep, &times), 0);
}

TEST(one_that_sleeps_for_three_seconds_is_at_rest)
{
        start(": >$d/up; exec sleep 600");
        /* The shell writes its last output before that. */
        for (char title[64] = ""; strncmp(title, "sleep", 5) != 0;)
                ck_assert_int_eq(proc_title(process->main, title, sizeof(title)), 0);
        await_sleep(true);
        while (idle_check_poll(process, now += 4 * USEC_PER_SEC) == 0)
                ck_assert_uint_lt(now, 1000 * USEC_PER_SEC);
        process_forget_heartbeat(process);
        ck_assert_int_eq(idle_check_poll(process, now), 0);
        ck_assert_int_eq(idle_check_poll(process, now + 3 * USEC_PER_SEC - 1), 0);
        ck_assert_int_eq(idle_check_poll(process, now + 3 * USEC_PER_SEC), 1);
}

TEST(one_that_wakes_up_in_between_is_not)
{
        uint64_t first, times;
        bool asleep;

        start(": >$d/up; while :; do sleep 0.02; done");
        for (unsigned i = 0; i < 5; i++) {
                ck_assert_int_eq(idle_check_poll(process, now), 0);
                first = process->slept_times;
                do
                        ck_assert_int_eq(proc_sleeps(process->main, &asleep, &times), 0);
                while (times == first);
                now += 4 * USEC_PER_SEC;
        }
}

TEST(one_that_runs_is_not)
{
        start(": >$d/up; while :; do :; done");
        await_sleep(false);
        ck_assert_int_eq(idle_check_poll(process, now), 0);
        /* It need not have waited for anything since. */
        ck_assert_int_eq(idle_check_poll(process, now + 4 * USEC_PER_SEC), 0);
}

TEST(one_whose_child_runs_a_job_is_at_once)
{
        pid_t *children;
        size_t n;

        start("setsid sh -c ': >$d/up; exec sleep 600' & wait");
        ck_assert_int_eq(proc_children(proc_pid(process->main), &children, &n), 0);
        ck_assert_uint_eq(n, 1);
        ck_assert_int_eq(idle_check_poll(process, now), 1);
        /* What is beyond the worker's group is not ended with it. */
        ck_assert_int_eq(kill(children[0], SIGKILL), 0);
        free(children);
}

TEST(a_child_in_its_own_group_is_no_job)
{
        start("sh -c ': >$d/up; exec sleep 600' & wait");
        ck_assert_int_eq(idle_check_poll(process, now), 0);
}

TEST_MAIN("rest", .each = {setup, runtime_folder_close})
