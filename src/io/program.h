/* SPDX-License-Identifier: MIT */
/* Executes the installed sqmgr, as a child that checks settings and state or in place of this process, and
 * the helper programs: those of databases and sqmgr-proc-reader. */
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

/* Executes the program in the place of this one, with this limit of open files. Our children, and descriptors
 * that are not closed on execve(), are kept. Returns only on failure, with the limit as before: -errno. */
int program_replace(const char *program, char *const *argv, const struct rlimit *nofile);

/* Executes another program of ours, given as an O_PATH descriptor, in this process. Returns only on failure:
 * -errno. */
int program_continue_as(int program_fd, char *const *argv);

/* Makes processes that our children leave behind our own children instead of init's. Returns 0 or
 * -errno. */
int program_adopt_orphans(void);

/* Starts a program of ours, opened with O_PATH, whose standard input is one end of a SOCK_SEQPACKET pair.
 * *ret_fd is our end, which the caller owns. Returns 0 with the pid of a child that the caller reaps; or
 * -errno, -EAGAIN: too many starts hang. The child exits with 127 if it cannot run the program. */
int helper_start(int program_fd, const char *name, pid_t *ret_pid, int *ret_fd);
