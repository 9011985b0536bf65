/* SPDX-License-Identifier: MIT */
/* Starts the helper programs: those of databases and sqmgr-proc-reader. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

/* Starts a program of ours, opened with O_PATH, whose standard input is one end of a SOCK_SEQPACKET pair.
 * *ret_fd is our end, which the caller owns. Returns 0 with the pid of a child that the caller reaps; or
 * -errno, -EAGAIN: too many starts hang. The child exits with 127 if it cannot run the program. */
int helper_start(int program_fd, const char *name, pid_t *ret_pid, int *ret_fd);
