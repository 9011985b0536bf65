/* SPDX-License-Identifier: MIT */
/* Tests of daemon/workers/exits.h and of polls while the readers of daemon/runtime/proc_facts.h are slow, or
 * silent. */
/* promises: P8 */
#include "daemon/poll/poll.h"
#include "daemon/workers/process.h"
#include "observe/observe.h"
#include "runtime_folder.h"
#include <sys/socket.h>

static bool silent;
static usec_t skipped; /* that the clock is ahead */

usec_t __real_clock_now(clockid_t clock);
usec_t __wrap_clock_now(clockid_t clock);

usec_t __wrap_clock_now(clockid_t clock)
{
        return __real_clock_now(clock) + skipped;
}

static int start_reader(int program_fd _unused_, const char *name _unused_, pid_t *ret_pid, int *ret_fd)
{
        int pair[2];

        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        *ret_pid = fork();
        if (*ret_pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                while (silent)
                        pause();
                close(pair[0]);
                proc_answer_serve(pair[1]);
                _exit(0);
        }
        close(pair[1]);
        *ret_fd = pair[0];
        return 0;
}

static void on_arrived(void *userdata _unused_)
{
        exits_resume(&runtime);
        poll_resume(&runtime, clock_now(CLOCK_MONOTONIC));
}

static void start(const char *script)
{
        static const struct proc_facts_ops ops = {.start = start_reader, .arrived = on_arrived};
        char text[1024];

        snprintf(text, sizeof(text), "%s/worker", dir);
        unit_write_file(dir, "worker", script);
        snprintf(text, sizeof(text),
                 RUNTIME_REDIS "[fleet:web]\ncommand=/bin/sh %s/worker\nlog=%s/log\nframework=plain\n", dir,
                 dir);
        runtime_start(text);
        ck_assert_int_eq(proc_facts_new(event, &runtime.children, -1, &ops, &runtime.proc_facts), 0);
        ck_assert_ptr_nonnull(runtime_start_worker());
}

static void setup(void)
{
        runtime_folder_open();
        silent = false;
        skipped = 0;
}

static void teardown(void)
{
        runtime.proc_facts = proc_facts_free(runtime.proc_facts);
        runtime_folder_close();
}

static const struct worker *worker(void)
{
        return runtime_world->fleets[0]->workers[0];
}

/* A poll reads the report of the start. */
static bool has_started(void)
{
        process_read_report(worker()->handle);
        return worker()->handle->report.outcome == LAUNCH_RUNNING;
}

TEST(an_exit_is_reported_once_the_log_is_read)
{
        start("echo the reason; exit 3");
        runtime_wakeup.pass.unsaved = false;
        run_until(worker()->handle->exit_waits);
        ck_assert_int_ne(worker()->state, WORKER_GONE);
        ck_assert(!runtime_wakeup.pass.unsaved);
        run_until(worker()->state == WORKER_GONE);
        ck_assert(runtime_wakeup.pass.unsaved);
        ck_assert(runtime_reported("the reason"));
}

TEST(the_log_of_an_expected_exit_is_not_waited_for)
{
        silent = true;
        start("exec sleep 1000");
        run_until(has_started());
        struct worker *asked = runtime_world->fleets[0]->workers[0];
        observe_stopped(asked, REASON_OPERATOR, 0, clock_now(CLOCK_MONOTONIC));
        ck_assert_int_eq(kill(asked->process.pid, SIGTERM), 0);
        run_until(asked->handle->exit_waits || asked->state == WORKER_GONE);
        ck_assert_int_eq(asked->state, WORKER_GONE);
}

TEST(a_log_that_is_not_read_in_time_is_missing_and_delays_the_exit_no_longer)
{
        silent = true;
        start("echo the reason; exit 3");
        run_until(worker()->handle->exit_waits);
        skipped += 3 * USEC_PER_SEC;
        run_until(worker()->state == WORKER_GONE);
        ck_assert(!runtime_reported("the reason"));
}

TEST(whether_another_process_works_is_unknown_until_it_is_read)
{
        start("sleep 1000 & wait");
        run_until(has_started());
        ck_assert_int_eq(sibling_find(worker()->handle, true, NULL), -EINPROGRESS);
        run_until(sibling_find(worker()->handle, true, NULL) == 0);
}

TEST(of_one_that_cannot_be_read_in_time_nothing_is_known)
{
        silent = true;
        start("sleep 1000 & wait");
        run_until(has_started());
        ck_assert_int_eq(sibling_find(worker()->handle, true, NULL), -EINPROGRESS);
        skipped += 3 * USEC_PER_SEC;
        run_until(sibling_find(worker()->handle, true, NULL) == -ETIMEDOUT);
}

static bool main_is(const char *name)
{
        char path[64], comm[64] = "";

        snprintf(path, sizeof(path), "/proc/%d/comm", worker()->process.pid);
        FILE *file = fopen(path, "re");
        if (file) {
                (void)fscanf(file, "%63s", comm);
                (void)fclose(file);
        }
        return strcmp(comm, name) == 0;
}

TEST(only_the_process_tree_is_searched_unless_the_whole_group_is_asked_for)
{
        start("(sleep 1000 &) && exec sleep 1000");
        run_until(has_started() && main_is("sleep"));
        run_until(sibling_find(worker()->handle, false, NULL) == 0);
        ck_assert_int_eq(sibling_find(worker()->handle, true, NULL), -EINPROGRESS);
}

TEST_MAIN("slow_exits", .each = {setup, teardown})
