/* SPDX-License-Identifier: MIT */
/* Tests of how workers are started, signalled and followed to their end (daemon/workers/execute.h, attach.h,
 * exits.h) with real processes. */
/* promises: P1 P4 */
#include "daemon/poll/poll.h"
#include "io/launcher.h"
#include "observe/observe.h"
#include "runtime_folder.h"

/* While the clock stands still, the time for what a test waits for does not pass; 0: it runs. */
static usec_t standstill;

usec_t __real_clock_now(clockid_t clock);
usec_t __wrap_clock_now(clockid_t clock);
usec_t __wrap_clock_now(clockid_t clock)
{
        return standstill ?: __real_clock_now(clock);
}

static void setup(void)
{
        standstill = 0;
        runtime_folder_open();
        signal(SIGPIPE, SIG_IGN);
        ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
}

/* Starts a worker that is this script, which finds the folder in $d. */
static struct worker *start(const char *script)
{
        char text[1024];

        snprintf(text, sizeof(text), "d=%s\n%s\n", dir, script);
        unit_write_file(dir, "script", text);
        snprintf(text, sizeof(text), RUNTIME_REDIS "[fleet:web]\ncommand=/bin/sh %s/script\n", dir);
        runtime_start(text);
        return runtime_start_worker();
}

static bool act(enum action_kind kind, struct worker *worker)
{
        const struct action action = {.kind = kind, .fleet = worker->fleet, .worker = worker};

        return execute_action(&runtime, &action, clock_now(CLOCK_MONOTONIC));
}

TEST(the_status_of_a_worker_that_exits_is_reported)
{
        struct worker *worker = start("exit 3");

        ck_assert_ptr_nonnull(worker->handle);
        runtime_wakeup.pass.unsaved = false;
        run_until(worker->state == WORKER_GONE);
        unsigned wakeups = runtime_wakeups;
        ck_assert(runtime_reported("status 3"));
        ck_assert(runtime_wakeup.pass.unsaved);
        /* Its zombie is gone, too. */
        ck_assert_int_eq(kill(worker->process.pid, 0), -1);
        /* A pass follows. */
        run_until(runtime_wakeups > wakeups);
}

static bool poll_reads(const struct process *process, enum launch_outcome outcome)
{
        poll_run(&runtime, true, clock_now(CLOCK_MONOTONIC));
        return process->report.outcome == outcome;
}

/* A wakeup may keep the new process from the processor on its way to the command. */
TEST(what_a_start_reports_wakes_nobody_and_is_read_by_the_next_poll)
{
        char text[1024];

        snprintf(text, sizeof(text), "d=%s\n" REPORT_PID("before", "$$") "read go <$d/go\n", dir);
        unit_write_file(dir, "before", text);
        snprintf(text, sizeof(text), "%s/go", dir);
        ck_assert_int_eq(mkfifo(text, 0600), 0);
        snprintf(text, sizeof(text),
                 RUNTIME_REDIS
                 "[fleet:web]\ncommand=/bin/sleep 1000\nlog=%s/log\nbefore_start=/bin/sh %s/before\n",
                 dir, dir);
        runtime_start(text);
        const struct worker *worker = runtime_start_worker();
        ck_assert_ptr_nonnull(worker);
        const struct process *process = worker->handle;

        run_until(runtime_read_pid(dir, "before") != 0);
        while (sd_event_run(event, 0) > 0)
                ;
        /* It has been sent. */
        ck_assert_int_eq(process->report.log_fd, -1);
        ck_assert(poll_reads(process, LAUNCH_PENDING));
        ck_assert_int_ge(process->report.log_fd, 0);
        unit_write_file(dir, "go", "go\n");
        run_until(poll_reads(process, LAUNCH_RUNNING));
        ck_assert_int_eq(process->report_fd, -1);
}

TEST(the_sweep_finds_a_worker_before_its_descriptor_is_read)
{
        struct worker *worker = start("exit 4");

        while (!worker->handle->orphan_search) {
                exits_reap(&runtime);
                (void)usleep(1000);
        }
        run_until(worker->state == WORKER_GONE);
        ck_assert(runtime_reported("status 4"));
        /* The descriptor reports it once more, to nobody. */
        size_t reported = runtime_world->n_events;
        ck_assert_int_ge(sd_event_run(event, 50 * USEC_PER_MSEC), 0);
        ck_assert_uint_eq(runtime_world->n_events, reported);
}

TEST(a_command_that_cannot_be_run_is_reported_with_the_reason)
{
        runtime_start(RUNTIME_REDIS "[fleet:web]\ncommand=/nonexistent/worker\n");
        struct worker *worker = runtime_start_worker();

        if (worker)
                run_until(worker->state == WORKER_GONE);
        ck_assert(runtime_reported("/nonexistent/worker"));
        ck_assert(runtime_reported("No such file"));
}

static int n_exited;

static void on_exited(struct child *child _unused_, const siginfo_t *info)
{
        n_exited += info->si_status == 7;
}

TEST(the_sweep_waits_for_children_and_orphans_that_are_no_workers)
{
        struct child ours = {.exited = on_exited};
        struct worker *worker = start("exec sleep 1000");
        int pair[2];
        pid_t orphan;

        n_exited = 0;
        ck_assert_int_eq(pipe2(pair, O_CLOEXEC), 0);
        ours.pid = fork();
        if (ours.pid == 0) {
                pid_t grandchild = fork();

                if (grandchild > 0)
                        _exit(write(pair[1], &grandchild, sizeof(grandchild)) > 0 ? 7 : 1);
                _exit(0);
        }
        children_add(&runtime.children, &ours);
        ck_assert_int_eq(read(pair[0], &orphan, sizeof(orphan)), sizeof(orphan));
        run_until(is_gone(orphan) && n_exited > 0);
        ck_assert_int_eq(n_exited, 1);
        ck_assert_int_eq(ours.pid, 0);
        ck_assert_int_ne(worker->state, WORKER_GONE);
        close_fd(pair[0]);
        close_fd(pair[1]);
}

TEST(of_a_storm_of_children_some_are_waited_for_at_a_time)
{
        enum { N = 300 };
        unsigned sweeps = 1, left = 0;
        pid_t pids[N];

        runtime_start(RUNTIME_REDIS "[fleet:web]\ncommand=/bin/true\n");
        for (size_t i = 0; i < N; i++) {
                pids[i] = fork();
                if (pids[i] == 0)
                        _exit(0);
        }
        for (size_t i = 0; i < N; i++)
                ck_assert_int_eq(waitid(P_PID, (id_t)pids[i], &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
        ck_assert(exits_reap(&runtime));
        for (size_t i = 0; i < N; i++)
                left += kill(pids[i], 0) == 0;
        ck_assert_uint_gt(left, N / 2);
        while (exits_reap(&runtime))
                sweeps++;
        ck_assert_uint_gt(sweeps, 2);
        for (size_t i = 0; i < N; i++)
                ck_assert_int_eq(kill(pids[i], 0), -1);
}

TEST(a_process_that_heartbeats_beside_the_main_one_becomes_the_worker_when_that_exits)
{
        struct worker *worker = start("(exec sleep 1000) &\n" REPORT_PID("child", "$!") "wait");
        pid_t child, main = worker->process.pid;

        run_until((child = runtime_read_pid(dir, "child")) > 0);
        attach_heartbeat(worker, child, clock_now(CLOCK_MONOTONIC));
        ck_assert_int_eq(worker->process.heartbeat_pid, child);
        ck_assert_int_eq(proc_pid(process_beating(worker->handle)), child);
        ck_assert_int_eq(proc_pid(worker->handle->main), main);

        ck_assert_int_eq(kill(main, SIGKILL), 0);
        run_until(worker->process.pid == child);
        ck_assert_int_ne(worker->state, WORKER_GONE);
        ck_assert_ptr_null(worker->handle->heartbeat);
        ck_assert_int_eq(proc_pid(worker->handle->main), child);

        ck_assert_int_eq(kill(child, SIGTERM), 0);
        run_until(worker->state == WORKER_GONE);
}

TEST(a_worker_whose_beating_process_dies_is_known_not_to_heartbeat)
{
        struct worker *worker =
                start("(exec sleep 1000) &\n" REPORT_PID("child", "$!") "wait; exec sleep 1000");
        pid_t child;

        run_until((child = runtime_read_pid(dir, "child")) > 0);
        attach_heartbeat(worker, child, clock_now(CLOCK_MONOTONIC));
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        run_until(worker->process.heartbeat_pid == 0);
        ck_assert_int_ne(worker->state, WORKER_GONE);
        ck_assert_ptr_null(process_beating(worker->handle));
}

TEST(a_process_of_another_family_does_not_heartbeat_for_a_worker)
{
        struct worker *worker = start("exec sleep 1000");

        attach_heartbeat(worker, getpid(), clock_now(CLOCK_MONOTONIC));
        ck_assert_int_eq(worker->process.heartbeat_pid, 0);
        ck_assert_ptr_null(process_beating(worker->handle));
}

/* What leaves a process behind, which tells its pid; and waits until it sleeps: an execve() gives it its name
 * first, and its title a moment later. */
#define LEAVES(process) "(" process ") &\n" REPORT_PID("child", "$!")
#define SLEEPS                                                                                               \
        "until read name </proc/$!/comm && [ $name = sleep ] && grep -q . /proc/$!/cmdline; do "             \
        "sleep 0.01; done\n"

/* Runs the loop until it is clear what becomes of it, and returns what it left behind. */
static pid_t see_what_it_left(struct worker *worker)
{
        pid_t main = worker->process.pid, child;

        run_until(worker->process.pid != main || worker->state == WORKER_GONE);
        run_until((child = runtime_read_pid(dir, "child")) > 0);
        return child;
}

static void end_orphan(pid_t pid)
{
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        run_until(is_gone(pid));
}

/* What it left behind is the worker. Ended first: nothing is left where that is not so. */
static void is_followed(struct worker *worker)
{
        pid_t child = see_what_it_left(worker);

        enum worker_state state = worker->state;
        pid_t pid = worker->process.pid;
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        run_until(worker->state == WORKER_GONE);
        ck_assert_int_eq(state, WORKER_STARTING);
        ck_assert_int_eq(pid, child);
}

/* With its mark; or, once it has booted, without. */
static const char *const backgrounds[] = {
        LEAVES("exec sleep 1000"),
        LEAVES("exec env -i X=1 bash -c \"exec -a 'sidekiq 7.3.1 app [0 of 5 busy]' sleep 1000\"") SLEEPS,
};

TEST_LOOP(a_worker_that_goes_to_the_background_is_not_lost, ELEMENTSOF(backgrounds))
{
        is_followed(start(backgrounds[_i]));
}

TEST(one_that_a_command_of_roots_has_run_as_another_user_is_not_lost)
{
        if (geteuid() != 0) {
                puts("skipped: only root can run a process as another user");
                return;
        }
        struct worker *worker = start(LEAVES("exec setpriv --reuid 65534 --clear-groups sleep 1000") SLEEPS);
        is_followed(worker);
}

/* Marks itself at once: an env(1) between would have an environment without marks, as a stranger has. */
TEST(one_that_is_in_the_midst_of_its_exec_is_waited_for)
{
        struct worker *worker = start("marks=$(env | grep ^SQMGR_)\n" LEAVES(
                "exec env -i /bin/sh -c \"echo >$d/hidden; while [ ! -e $d/go ]; do sleep 0.01; done; "
                "export $(echo $marks); exec sleep 1000\"") "until [ -e $d/hidden ]; do sleep 0.01; done");
        pid_t main = worker->process.pid;

        standstill = clock_now(CLOCK_MONOTONIC);
        run_until(worker->handle->orphan_search);
        unit_write_file(dir, "go", "");
        run_until(worker->process.pid != main || worker->state == WORKER_GONE);
        ck_assert_int_eq(worker->state, WORKER_STARTING);
        ck_assert_int_eq(worker->process.pid, runtime_read_pid(dir, "child"));
}

/* What is none of its own, and what it left although it failed. */
static const char *const leftovers[] = {
        LEAVES("SQMGR_START=1 exec sleep 1000") SLEEPS,
        LEAVES("SQMGR_WORKER=web/2 exec sleep 1000") SLEEPS,
        LEAVES("SQMGR_INSTANCE=another exec sleep 1000") SLEEPS,
        LEAVES("exec env -i sleep 1000") SLEEPS,
        LEAVES("exec sleep 1000") "exit 1",
};

TEST_LOOP(what_is_not_of_this_very_start_does_not_become_the_worker, ELEMENTSOF(leftovers))
{
        struct worker *worker;
        pid_t child;

        worker = start(leftovers[_i]);
        child = see_what_it_left(worker);
        bool lives = kill(child, 0) == 0;
        end_orphan(child);
        ck_assert_int_eq(worker->state, WORKER_GONE);
        ck_assert(lives);
}

TEST(what_an_earlier_start_left_does_not_become_the_worker)
{
        struct worker *worker = start(LEAVES("exec sleep 1000") "exit 1");
        pid_t child = see_what_it_left(worker);

        fleet_reap(worker->fleet, process_free);
        unit_write_file(dir, "script", "exit 0\n");
        worker = runtime_start_worker();
        ck_assert_ptr_nonnull(worker);
        run_until(worker->state == WORKER_GONE);
        end_orphan(child);
}

TEST(among_many_orphans_the_one_of_this_start_is_found)
{
        struct worker *worker =
                start("i=0; while [ $i -lt 100 ]; do i=$((i + 1)); SQMGR_START=1 sleep 1000 &\n" SLEEPS
                      "done\n" LEAVES("exec sleep 1000") SLEEPS);
        pid_t main = worker->process.pid, child = see_what_it_left(worker);

        pid_t pid = worker->process.pid;
        ck_assert_int_eq(kill(-main, SIGKILL), 0);
        run_until(worker->state == WORKER_GONE);
        ck_assert_int_eq(pid, child);
}

static void heartbeat_from_main(struct worker *worker)
{
        attach_heartbeat(worker, worker->process.pid, clock_now(CLOCK_MONOTONIC));
        ck_assert_int_eq(worker->process.heartbeat_pid, worker->process.pid);
}

TEST(a_worker_that_does_not_catch_the_quiet_signal_is_not_sent_it)
{
        struct worker *worker = start(REPORT_PID("up", "$$") "exec sleep 1000");

        run_until(runtime_read_pid(dir, "up") > 0);
        ck_assert(!act(ACTION_QUIET, worker));
        ck_assert_int_eq(worker->orders.signal_error, ESRCH); /* it does not beat */
        heartbeat_from_main(worker);
        ck_assert(!act(ACTION_QUIET, worker));
        ck_assert_int_eq(worker->orders.signal_error, ENOTSUP);
        ck_assert_int_eq(kill(worker->process.pid, 0), 0);
}

TEST(a_stop_signal_that_a_heartbeat_alone_names_is_sent_to_who_catches_it)
{
        struct worker *worker = start("trap '" REPORT_PID("stop", "1") "' TERM\n" REPORT_PID(
                "up", "$$") "while :; do sleep 0.01; done");

        run_until(runtime_read_pid(dir, "up") > 0);
        heartbeat_from_main(worker);
        worker->heartbeat.stop_signal = SIGUSR1;
        pid_t pid = worker->process.pid;
        ck_assert(act(ACTION_STOP, worker));
        run_until(runtime_read_pid(dir, "stop") == 1 || kill(pid, 0) < 0);
        ck_assert_int_eq(kill(pid, 0), 0);
}

TEST(a_worker_that_catches_the_quiet_signal_gets_it)
{
        struct worker *worker = start("trap '" REPORT_PID("quiet", "1") "' TSTP\n" REPORT_PID(
                "up", "$$") "while :; do sleep 0.01; done");

        run_until(runtime_read_pid(dir, "up") > 0);
        heartbeat_from_main(worker);
        ck_assert(act(ACTION_QUIET, worker));
        ck_assert_int_eq(worker->orders.signal_error, 0);
        run_until(runtime_read_pid(dir, "quiet") == 1);
}

TEST(a_worker_that_does_not_heartbeat_is_stopped_with_all_that_it_started)
{
        struct worker *worker = start("(exec sleep 1000) &\n" REPORT_PID("child", "$!") "wait");
        pid_t child;

        run_until((child = runtime_read_pid(dir, "child")) > 0);
        ck_assert(act(ACTION_STOP, worker));
        run_until(worker->state == WORKER_GONE);
        run_until(is_gone(child));
}

TEST(a_worker_that_is_gone_has_nobody_elses_group_signalled)
{
        struct worker *worker = start("exec sleep 1000");
        struct proc *main = worker->handle->main;
        pid_t pid = worker->process.pid, other = unit_fork_bound();

        if (other == 0) {
                (void)setsid();
                for (;;)
                        pause();
        }
        while (getpgid(other) != other)
                (void)usleep(1000);
        unit_kill(pid);
        ck_assert_int_eq(probe_pidfd(proc_pidfd(main)), -ESRCH);
        /* As if the other one had its pid now. */
        worker->process.pid = other;
        ck_assert(!act(ACTION_STOP, worker));
        ck_assert_int_eq(worker->orders.signal_error, ESRCH);
        ck_assert(!act(ACTION_KILL, worker));
        ck_assert_int_eq(waitpid(other, NULL, WNOHANG), 0);
        unit_kill(other);
        worker->process.pid = pid;
}

/* But by the operator's own word. */
TEST_LOOP(of_a_worker_that_heartbeats_beside_its_main_process_the_kill_ends_what_was_reported, 2)
{
        struct worker *worker = start(
                "trap '' TERM\n(exec sleep 1000) &\n" REPORT_PID("child", "$!") "while :; do wait; done");
        pid_t main = worker->process.pid, child;

        run_until((child = runtime_read_pid(dir, "child")) > 0);
        attach_heartbeat(worker, child, clock_now(CLOCK_MONOTONIC));
        worker->fleet->force = _i == 1;
        ck_assert(act(ACTION_KILL, worker));
        if (_i == 0) {
                run_until(is_gone(child) && worker->process.heartbeat_pid == 0);
                ck_assert_int_eq(kill(main, 0), 0);
                /* What is left has not booted. */
                ck_assert(act(ACTION_KILL, worker));
        }
        run_until(worker->state == WORKER_GONE);
        run_until(is_gone(main) && is_gone(child));
}

/* It may have since the last poll, except by the operator's own order. */
TEST_LOOP(what_is_left_of_a_worker_and_has_booted_is_not_killed, 2)
{
        struct worker *worker = start(
                "bash -c \"exec -a 'sidekiq 7.3.1 app [0 of 5 busy]' sleep 1000\" &\n" SLEEPS REPORT_PID(
                        "child", "$!") "while :; do wait; done");
        pid_t main = worker->process.pid, child;

        run_until((child = runtime_read_pid(dir, "child")) > 0);
        worker->state = WORKER_STOPPING;
        ck_assert(!act(_i == 0 ? ACTION_STOP : ACTION_KILL, worker));
        ck_assert(worker->process.booted);
        ck_assert_int_eq(kill(child, 0), 0);
        worker->fleet->force = true;
        ck_assert(act(ACTION_KILL, worker));
        run_until(worker->state == WORKER_GONE);
        run_until(is_gone(main) && is_gone(child));
}

/* Its command has left its group, whose number is another user's by now. */
TEST(what_another_user_has_in_a_group_of_that_number_is_none_of_it)
{
        if (geteuid() != 0) {
                puts("skipped: only root can run a process as another user");
                return;
        }
        struct worker *worker = start("exec setpriv --reuid 65534 --clear-groups sleep 1000");
        pid_t pid = worker->process.pid, group = worker->handle->group, other;
        uid_t uid = 0;

        while (uid != 65534)
                ck_assert_int_ge(proc_uid(worker->handle->main, &uid), 0);
        ck_assert_int_ge(other = fork(), 0);
        if (other == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void)setsid();
                execlp("setpriv", "setpriv", "--reuid", "65533", "--clear-groups", "--pdeathsig", "KILL",
                       "bash", "-c", "exec -a 'sidekiq 7.3.1 app [0 of 5 busy]' sleep 1000", NULL);
                _exit(127);
        }
        worker->handle->group = other;
        worker->state = WORKER_STOPPING;
        /* It has booted at last, and keeps no signal from the worker. */
        run_until(runtime_has_booted(other));
        ck_assert(act(ACTION_KILL, worker));
        run_until(worker->state == WORKER_GONE);
        ck_assert_int_eq(worker->process.pid, pid);
        ck_assert_int_eq(kill(other, SIGKILL), 0);
        run_until(is_gone(other));
        worker->handle->group = group;
}

TEST(an_adopted_worker_is_watched_though_it_is_no_child)
{
        struct worker *worker;
        struct proc *proc;
        int pair[2];
        pid_t pid;

        runtime_start(RUNTIME_REDIS "[fleet:web]\ncommand=/bin/true\n");
        /* As one of an earlier sqmgr it is the child of another one. */
        ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
        ck_assert_int_eq(pipe2(pair, O_CLOEXEC), 0);
        pid_t between = fork();
        if (between == 0) {
                pid_t grandchild = fork();

                if (grandchild > 0)
                        _exit(write(pair[1], &grandchild, sizeof(grandchild)) > 0 ? 0 : 1);
                for (;;)
                        pause();
        }
        ck_assert_int_eq(read(pair[0], &pid, sizeof(pid)), sizeof(pid));
        ck_assert_int_eq(waitpid(between, NULL, 0), between);
        worker = runtime_adopt(pid, &proc);
        ck_assert_int_eq(attach_adopted(&runtime, worker, proc, NULL, NULL, 0), 0);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        run_until(worker->state == WORKER_GONE);
        close_fd(pair[0]);
        close_fd(pair[1]);
}

/* The application has replaced the standard output of a fork by one of these. */
static const struct {
        int flags;
        bool is_fifo, is_read_back;
} outputs[] = {
        {O_RDWR | O_APPEND, false, true},
        {O_WRONLY | O_APPEND, false, false},
        {O_PATH, false, false},
        {O_RDWR, true, false},
};

/* Becomes a fork that writes a line once it may, and ends. */
static void write_line_and_exit(const char *path, int flags, int ready, int may_write)
{
        char byte = 0;
        int fd = open(path, flags | O_CLOEXEC);

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || fd < 0 || dup2(fd, STDOUT_FILENO) < 0 ||
            write(ready, &byte, 1) != 1 || read(may_write, &byte, 1) != 1)
                _exit(1);
        (void)!write(STDOUT_FILENO, "its own\n", 8);
        _exit(3);
}

TEST_LOOP(of_a_fork_only_what_it_could_read_itself_is_read_back, ELEMENTSOF(outputs))
{
        struct worker *worker;
        int ready[2], may_write[2];
        char path[64], text[256];
        struct proc *proc;

        snprintf(path, sizeof(path), "%s/output", dir);
        if (outputs[_i].is_fifo)
                ck_assert_int_eq(mkfifo(path, 0600), 0);
        else
                unit_write_file(dir, "output", "of another\n");
        snprintf(text, sizeof(text), RUNTIME_REDIS "[fleet:web]\ncommand=/bin/true\nlog=%s/log\n", dir);
        runtime_start(text);
        ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
        ck_assert_int_eq(pipe2(may_write, O_CLOEXEC), 0);
        pid_t pid = fork();
        if (pid == 0)
                write_line_and_exit(path, outputs[_i].flags, ready[1], may_write[0]);
        ck_assert_int_eq(read(ready[0], text, 1), 1);
        worker = runtime_adopt(pid, &proc);
        ck_assert_int_eq(attach_forked(&runtime, worker, proc, -1), 0);
        ck_assert_int_eq(write(may_write[1], "", 1), 1);
        run_until(worker->state == WORKER_GONE && runtime_reported("status 3"));
        ck_assert_int_eq(runtime_reported("its own"), outputs[_i].is_read_back);
        ck_assert(!runtime_reported("of another"));
        for (size_t i = 0; i < 2; i++) {
                close_fd(ready[i]);
                close_fd(may_write[i]);
        }
}

/* Returns the lowest descriptor that is not open. */
static int first_unused(void)
{
        int fd = dup(STDIN_FILENO);

        ck_assert_int_ge(fd, 0);
        close_fd(fd);
        return fd;
}

/* One more descriptor each time, until a start succeeds. */
TEST(a_worker_that_cannot_be_watched_does_not_stay_and_is_no_failed_start)
{
        struct rlimit before;
        unsigned n = 0;

        runtime_start(RUNTIME_REDIS "[fleet:web]\ncommand=/bin/sleep 1000\n");
        ck_assert_int_eq(launcher_prepare(), 0);
        struct fleet *fleet = runtime_world->fleets[0];
        int unused = first_unused();
        for (; fleet->n_workers == 0; n++) {
                ck_assert_uint_lt(n, 30);
                unit_leave_descriptors(n, &before);
                const struct worker *worker = runtime_start_worker();
                ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
                if (worker && worker->state != WORKER_GONE && process_is_watched(worker->handle))
                        break;
                /* What was forked all the same is ended: no child is left, and no descriptor. */
                while (waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT) == 0) {
                        exits_reap(&runtime);
                        (void)usleep(1000);
                }
                fleet_reap(fleet, process_free);
                ck_assert_uint_eq(fleet->n_workers, 0);
                ck_assert_int_eq(first_unused(), unused);
        }
        ck_assert_uint_gt(n, 2);
        ck_assert_uint_eq(fleet->n_workers, 1);
        ck_assert(runtime_reported("could not be started: error in sqmgr itself: Too many open files"));
        ck_assert_uint_eq(fleet->crash.count, 0);
        ck_assert_uint_eq(fleet->totals.events[EVENT_CRASHED], 0);
}

TEST_MAIN("exits", .each = {setup, runtime_folder_close}, .timeout_seconds = 120)
