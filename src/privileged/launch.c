/* SPDX-License-Identifier: MIT */
/* Starts a worker's process and reports the outcome: the parent's part. */
#include "privileged/launch.h"

#include "base/fd.h"
#include "io/clock.h"
#include "privileged/launch_child.h"
#include "privileged/launch_request.h"
#include "wire/quoted.h"
#include <limits.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/single_threaded.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Returns the signals that have an action here, for the child to reset. Read once: 64 system calls are a good
 * part of a start, and sqmgr sets all its actions before the first start. */
static const sigset_t *signals_with_action(void)
{
        static sigset_t signals;
        static bool known;
        struct sigaction action;

        if (known)
                return &signals;
        sigemptyset(&signals);
        for (int signo = 1; signo < NSIG; signo++)
                if (sigaction(signo, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
                        sigaddset(&signals, signo);
        known = true;
        return &signals;
}

/* Like fork(), but the child shares our table of descriptors until child_separate(). sqmgr has several
 * descriptors for each worker: copying and closing them would take longer than the rest of the start. Falls
 * back to fork() if there are other threads, since only fork() prepares the locks that they may hold. */
static pid_t fork_sharing(bool *ret_shares)
{
        struct clone_args how = {.flags = CLONE_FILES, .exit_signal = SIGCHLD};

        *ret_shares = __libc_single_threaded;
        long pid = *ret_shares ? syscall(SYS_clone3, &how, sizeof(how)) : -1;
        if (pid >= 0)
                return (pid_t)pid;
        /* The kernel is too old, a filter rejects the call, or memory is short. */
        *ret_shares = false;
        return fork();
}

int launch_start(const struct launch_request *request, struct launched *ret)
{
        struct launch_birth birth = {.actions = signals_with_action(), .parent = getpid()};
        sigset_t all, before;
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        _cleanup_close_ int parent_end = pair[0];
        _cleanup_close_ int child_end = pair[1];

        sigfillset(&all);
        int r = pthread_sigmask(SIG_SETMASK, &all, &before);
        if (r != 0)
                return -r;
        /* Rename before the fork, so that the child never has another name. */
        char comm[16] = "";
        (void)prctl(PR_GET_NAME, comm);
        (void)prctl(PR_SET_NAME, LAUNCH_COMM);
        birth.report_fd = child_end;
        pid_t pid = request->shares_descriptors ? fork_sharing(&birth.shares) : fork();
        if (pid == 0)
                launch_child_run(request, &birth);
        r = -errno;
        (void)prctl(PR_SET_NAME, comm);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (pid < 0)
                return r;

        *ret = (struct launched){.pid = pid, .report_fd = TAKE_FD(parent_end), .child_fd = -1};
        if (birth.shares)
                ret->child_fd = TAKE_FD(child_end);
        return 0;
}

int launch_report_read(int report_fd, struct launch_report *report)
{
        while (report->outcome == LAUNCH_PENDING) {
                struct launch_message message;
                _cleanup_close_ int fd = -1;

                ssize_t n = fd_receive(report_fd, &message, sizeof(message), &fd, MSG_DONTWAIT);
                if (n == -EAGAIN)
                        return 0;
                if (n < 0)
                        return (int)n;
                report->separate |= n > 0;
                if (n == 0) {
                        report->outcome = LAUNCH_RUNNING;
                } else if (n != sizeof(message)) {
                        return -EBADMSG;
                } else if (message.kind == LAUNCH_MESSAGE_LOG && fd >= 0 && report->log_fd < 0) {
                        report->log_fd = TAKE_FD(fd);
                        report->log_start_bytes = message.log_start_bytes;
                        report->log_uid = message.log_uid;
                        report->log_gid = message.log_gid;
                } else if (message.kind == LAUNCH_MESSAGE_REDIS &&
                           message.redis_difference < _REDIS_DIFFERENCE_MAX) {
                        report->redis = (struct redis_comparison){
                                .difference = (enum redis_difference)message.redis_difference,
                                .db = message.redis_db,
                                .other_db = message.redis_other_db,
                        };
                } else if (message.kind == LAUNCH_MESSAGE_ERROR) {
                        message.text[MIN((size_t)message.length, sizeof(message.text) - 1)] = '\0';
                        report->error = malloc(sizeof(*report->error));
                        if (report->error)
                                quoted_set(report->error, message.text);
                        report->outcome = LAUNCH_FAILED;
                }
        }
        return 0;
}

void launch_report_clear(struct launch_report *report)
{
        close_fd(report->log_fd);
        free(report->error);
        *report = LAUNCH_REPORT_INIT;
}

int launch_rehearse(const struct launch_request *request, usec_t timeout, struct launch_report *report)
{
        struct launch_request rehearsal = *request;
        usec_t deadline = usec_add(clock_now(CLOCK_MONOTONIC), timeout);
        struct launched launched = {.report_fd = -1};

        rehearsal.rehearsal = true;
        int r = launch_start(&rehearsal, &launched);
        if (r < 0)
                return r;
        while (r >= 0 && report->outcome == LAUNCH_PENDING) {
                struct pollfd wait = {.fd = launched.report_fd, .events = POLLIN};
                usec_t left = usec_sub(deadline, clock_now(CLOCK_MONOTONIC));

                if (left == 0)
                        break;
                if (poll(&wait, 1, (int)MIN(left / USEC_PER_MSEC + 1, (usec_t)INT_MAX)) < 0 && errno != EINTR)
                        r = -errno;
                else
                        r = launch_report_read(launched.report_fd, report);
        }
        close_fd(launched.report_fd);
        (void)kill(launched.pid, SIGKILL);
        /* A child that hangs in a file system cannot be reaped now. */
        (void)waitpid(launched.pid, NULL, report->outcome == LAUNCH_PENDING ? WNOHANG : 0);
        return r;
}

int launch_raise_nofile(struct rlimit *ret)
{
        struct rlimit before;

        if (getrlimit(RLIMIT_NOFILE, &before) < 0)
                return -errno;
        struct rlimit raised = {.rlim_cur = before.rlim_max, .rlim_max = before.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) < 0)
                return -errno;
        *ret = before;
        return 0;
}
