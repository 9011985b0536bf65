/* SPDX-License-Identifier: MIT */
/* Tests of io/signal.h: which processes can get a signal at all. */
/* promises: P1 P4 */
#include "io/proc.h"
#include "io/signal.h"
#include "unit.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* Forks a child that waits to be ended: in a process group of its own, or in that of a leader. group: 0 for
 * its own, -1 for ours. */
static pid_t spawn(pid_t group)
{
        pid_t parent = getpid(), pid = unit_fork_bound();

        if (pid == 0) {
                while (getppid() == parent)
                        pause();
                _exit(0);
        }
        if (group >= 0)
                ck_assert_int_eq(setpgid(pid, group), 0);
        return pid;
}

static struct proc *opened(pid_t pid)
{
        struct proc *proc = NULL;

        ck_assert_int_eq(proc_open(pid, &proc), 0);
        return proc;
}

/* Returns the signal that has ended the child. */
static int await_end(pid_t pid)
{
        int status;

        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(init_and_sqmgr_itself_get_no_signal)
{
        static const pid_t never[] = {INT32_MIN, -1, 0, 1};

        FOREACH_ELEMENT(pid, never) {
                ck_assert_int_eq(signal_child(*pid, SIGCONT), -EPERM);
                ck_assert_int_eq(signal_child_group(*pid, SIGCONT), -EPERM);
        }
        ck_assert_int_eq(signal_child(getpid(), SIGCONT), -EPERM);
        ck_assert_int_eq(signal_child_group(getpid(), SIGCONT), -EPERM);

        _cleanup_proc_ struct proc *self = opened(getpid()), *init = opened(1);
        ck_assert_int_eq(signal_process(self, SIGCONT), -EPERM);
        ck_assert_int_eq(signal_group(self, SIGCONT), -EPERM);
        ck_assert_int_eq(signal_process(init, SIGCONT), -EPERM);
        ck_assert_int_eq(signal_group(init, SIGCONT), -EPERM);
}

TEST(what_is_no_signal_is_refused)
{
        pid_t pid = spawn(0);
        _cleanup_proc_ struct proc *proc = opened(pid);
        const int none[] = {-1, 0, SIGRTMAX + 1};

        FOREACH_ELEMENT(signo, none) {
                ck_assert_int_eq(signal_process(proc, *signo), -EINVAL);
                ck_assert_int_eq(signal_group(proc, *signo), -EINVAL);
                ck_assert_int_eq(signal_child(pid, *signo), -EINVAL);
                ck_assert_int_eq(signal_child_group(pid, *signo), -EINVAL);
        }
        ck_assert_int_eq(signal_child(pid, SIGKILL), 0);
        ck_assert_int_eq(await_end(pid), SIGKILL);
}

TEST(by_its_pid_only_a_child_that_is_not_reaped_is_signaled)
{
        int pair[2];
        pid_t grandchild;

        ck_assert_int_eq(pipe2(pair, O_CLOEXEC), 0);
        pid_t child = unit_fork_bound();
        if (child == 0) {
                grandchild = spawn(0);
                (void)!write(pair[1], &grandchild, sizeof(grandchild));
                for (;;)
                        pause();
        }
        ck_assert_int_eq(read(pair[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
        ck_assert_int_eq(signal_child(grandchild, SIGKILL), -ECHILD);
        ck_assert_int_eq(signal_child_group(grandchild, SIGKILL), -ECHILD);
        ck_assert(probe_pid(grandchild));

        ck_assert_int_eq(signal_child(child, SIGKILL), 0);
        ck_assert_int_eq(await_end(child), SIGKILL);
        ck_assert_int_eq(signal_child(child, SIGKILL), -ECHILD);
        ck_assert_int_eq(signal_child_group(child, SIGKILL), -ECHILD);
        close(pair[0]);
        close(pair[1]);
}

TEST(a_group_is_signaled_through_the_process_that_leads_it)
{
        pid_t leader = spawn(0), member = spawn(leader), other = spawn(0);
        _cleanup_proc_ struct proc *led = opened(leader), *alone = opened(member);

        /* A process that leads no group gets the signal alone. */
        ck_assert_int_eq(signal_group(alone, SIGUSR1), 0);
        ck_assert_int_eq(await_end(member), SIGUSR1);
        ck_assert_int_eq(signal_group(alone, SIGUSR1), -ESRCH);
        ck_assert_int_eq(waitpid(leader, NULL, WNOHANG), 0);

        member = spawn(leader);
        ck_assert_int_eq(signal_group(led, SIGUSR1), 0);
        ck_assert_int_eq(await_end(member), SIGUSR1);
        ck_assert_int_eq(await_end(leader), SIGUSR1);

        leader = spawn(0);
        member = spawn(leader);
        ck_assert_int_eq(signal_child_group(leader, SIGKILL), 0);
        ck_assert_int_eq(await_end(member), SIGKILL);
        ck_assert_int_eq(await_end(leader), SIGKILL);

        ck_assert_int_eq(waitpid(other, NULL, WNOHANG), 0);
        ck_assert_int_eq(signal_child(other, SIGKILL), 0);
        ck_assert_int_eq(await_end(other), SIGKILL);
}

/* The group of a process that was reaped lives on, or its number is used again. */
TEST(the_group_of_a_process_that_was_reaped_gets_no_signal)
{
        pid_t leader = spawn(0), member = spawn(leader);
        _cleanup_proc_ struct proc *led = opened(leader);

        ck_assert_int_eq(signal_child(leader, SIGKILL), 0);
        ck_assert_int_eq(await_end(leader), SIGKILL);
        ck_assert(probe_group(leader));
        ck_assert_int_eq(signal_group(led, SIGKILL), -ESRCH);
        ck_assert_int_eq(waitpid(member, NULL, WNOHANG), 0);
        ck_assert_int_eq(signal_child(member, SIGKILL), 0);
        ck_assert_int_eq(await_end(member), SIGKILL);
        ck_assert(!probe_group(leader));
}

TEST(the_group_of_sqmgr_itself_gets_no_signal)
{
        pid_t leader = spawn(0), member = spawn(leader);
        _cleanup_proc_ struct proc *led = opened(leader);

        ck_assert_int_eq(setpgid(0, leader), 0);
        ck_assert_int_eq(signal_group(led, SIGKILL), 0);
        ck_assert_int_eq(await_end(leader), SIGKILL);
        ck_assert_int_eq(waitpid(member, NULL, WNOHANG), 0);
        ck_assert_int_eq(signal_child(member, SIGKILL), 0);
        ck_assert_int_eq(await_end(member), SIGKILL);
}

TEST(a_pid_is_known_until_its_process_is_reaped)
{
        pid_t pid = spawn(-1);
        _cleanup_proc_ struct proc *proc = opened(pid);
        siginfo_t info;

        ck_assert_int_eq(signal_process(proc, SIGKILL), 0);
        ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
        ck_assert(probe_pid(pid));
        ck_assert_int_eq(probe_pidfd(proc_pidfd(proc)), 0);
        ck_assert_int_eq(await_end(pid), SIGKILL);
        ck_assert(!probe_pid(pid));
        ck_assert_int_eq(probe_pidfd(proc_pidfd(proc)), -ESRCH);
        ck_assert(!probe_pid(0));
        ck_assert(!probe_pid(-1));
        ck_assert(!probe_group(0));
        ck_assert(!probe_group(1));
}

TEST_MAIN("signal")
