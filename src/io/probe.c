/* SPDX-License-Identifier: MIT */
/* Checks whether processes exist: the kernel checks signal 0 like any signal, but does not send it. */
#include "io/probe.h"
#include <errno.h>
#include <signal.h>
#include <sys/pidfd.h>

int probe_pidfd(int pidfd)
{
        return pidfd_send_signal(pidfd, 0, NULL, 0) < 0 && errno != EPERM ? -errno : 0;
}

bool probe_pid(pid_t pid)
{
        return pid > 0 && (kill(pid, 0) == 0 || errno != ESRCH);
}

bool probe_group(pid_t group)
{
        return group > 1 && kill(-group, 0) == 0;
}
