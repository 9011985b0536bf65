/* SPDX-License-Identifier: MIT */
/* Starts programs of ours: the installed sqmgr, which checks settings and state, and the helper programs,
 * those of databases and sqmgr-proc-reader. */
#pragma once

#include "base/macro.h"
#include <sys/resource.h>
#include <sys/types.h>

/* The program, and the files that it is asked about. The child has our environment, no signal blocked, and
 * none of our descriptors. */
struct program_check {
        const char *program; /* an absolute path */
        const char *config_path;
        const char *state_path; /* NULL: only the config file is checked, and no start is rehearsed */
        struct rlimit nofile;   /* limit of open files */
};

struct program_checking {
        pid_t pid;     /* a child: the caller must reap it */
        int output_fd; /* owned; what the child prints. Never blocks. Without a state file: -1 */
};

/* Starts the check: `PROGRAM -c CONFIG --check-state=STATE`, or --print-config without a state file. If it
 * cannot run, the child prints the reason and exits with status 127. Returns 0, or -errno if nothing was
 * started. */
int program_check_start(const struct program_check *check, struct program_checking *ret);

/* Starts a program of ours, opened with O_PATH, whose standard input is one end of a SOCK_SEQPACKET pair.
 * *ret_fd is our end, which the caller owns. Returns 0 with the pid of a child that the caller reaps; or
 * -errno, -EAGAIN: too many starts hang. The child exits with 127 if it cannot run the program. */
int helper_start(int program_fd, const char *name, pid_t *ret_pid, int *ret_fd);
