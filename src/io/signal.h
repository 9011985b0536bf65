/* SPDX-License-Identifier: MIT */
/* Sends signals: to a process that is held by a pidfd, to its group, or to a child that is not reaped. No
 * other process can be named.
 *
 * All return 0 or -errno. -EPERM: init, sqmgr itself and its own group get no signal from here. -EINVAL: no
 * signal. */
#pragma once

#include <sys/types.h>

struct proc; /* io/proc.h */

/* Returns -ESRCH once the process was reaped, even if another process has its pid. */
int signal_process(const struct proc *proc, int signo);
/* Signals the process group that the process leads, or else the process alone. Returns -ESRCH once the
 * process was reaped: another group may have the number then. */
int signal_group(const struct proc *leader, int signo);

/* Signals a child that was not reaped yet. Returns -ECHILD for any other process. */
int signal_child(pid_t child, int signo);
/* Signals the process group that the child leads, or the child alone before it leads one. Returns as
 * signal_child(). */
int signal_child_group(pid_t child, int signo);
