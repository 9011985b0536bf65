/* SPDX-License-Identifier: MIT */
/* Sends signals: to a process that is held by a pidfd, to its group, or to a child that is not reaped. No
 * other process can be named.
 *
 * All return 0 or -errno. -EPERM: init, sqmgr itself and its own group get no signal from here. -EINVAL: no
 * signal. */
#pragma once

#include "base/macro.h"
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

/* The probe functions check whether processes exist. They send nothing and need no rights, but use the system
 * calls that send signals: they are here so that no other file contains these calls. */

/* Returns 0 while the process is not reaped: until then its pid is not reused. -ESRCH afterwards; or -errno.
 */
int probe_pidfd(int pidfd);
/* Returns false if no process has the pid. Another process may have got it meanwhile. */
bool probe_pid(pid_t pid);
/* Returns true if the process group has a process that we may signal. */
bool probe_group(pid_t group);
