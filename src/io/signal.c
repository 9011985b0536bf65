/* SPDX-License-Identifier: MIT */
/* Sends signals; see the header. */
#include "io/signal.h"
#include "io/proc.h"
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

/* Returns false if there is no such group, or it is our own. */
static bool signal_led(pid_t leader, int signo)
{
        return leader != getpgrp() && kill(-leader, signo) == 0;
}

static int check(pid_t pid, int signo)
{
        if (signo < 1 || signo > SIGRTMAX)
                return -EINVAL;
        /* kill() takes 0 for our own group, and -1 for all processes. */
        return pid <= 1 || pid == getpid() ? -EPERM : 0;
}

int signal_process(const struct proc *proc, int signo)
{
        int r = check(proc_pid(proc), signo);

        if (r == 0 && pidfd_send_signal(proc_pidfd(proc), signo, NULL, 0) < 0)
                r = -errno;
        return r;
}

int signal_group(const struct proc *leader, int signo)
{
        int r = check(proc_pid(leader), signo);

        if (r == 0)
                r = probe_pidfd(proc_pidfd(leader));
        if (r < 0 || signal_led(proc_pid(leader), signo))
                return r;
        return signal_process(leader, signo);
}

/* A child keeps its pid until we reap it. */
static int check_child(pid_t child, int signo)
{
        siginfo_t info;
        int r = check(child, signo);

        if (r == 0 && waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
                r = -errno;
        return r;
}

int signal_child(pid_t child, int signo)
{
        int r = check_child(child, signo);

        return r == 0 && kill(child, signo) < 0 ? -errno : r;
}

int signal_child_group(pid_t child, int signo)
{
        int r = check_child(child, signo);

        if (r < 0 || signal_led(child, signo))
                return r;
        return signal_child(child, signo);
}
