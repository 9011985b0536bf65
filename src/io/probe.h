/* SPDX-License-Identifier: MIT */
/* Checks whether processes exist. Sends nothing and needs no rights, but uses the system calls that send
 * signals. This file is in io/ so that no other layer contains these calls. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

/* Returns 0 while the process is not reaped: until then its pid is not reused. -ESRCH afterwards; or -errno.
 */
int probe_pidfd(int pidfd);
/* Returns false if no process has the pid. Another process may have got it meanwhile. */
bool probe_pid(pid_t pid);
/* Returns true if the process group has a process that we may signal. */
bool probe_group(pid_t group);
