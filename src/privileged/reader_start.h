/* SPDX-License-Identifier: MIT */
/* Starts the programs sqmgr-reader and sqmgr-proc-reader as another user, and connects Unix sockets for the
 * first.
 *
 * A program gets no environment and no descriptors but those that are named here, on FD_READER and behind.
 * All return 0 with the pid of a child that the caller reaps, or -errno. None waits. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

struct proc_reader_user; /* io/proc_reader.h */

struct reader_start {
        int program_fd; /* the program, opened with O_PATH */
        uid_t uid;      /* as root: the user of the program, with no further groups. Else our own stays */
        gid_t gid;
        int socket_fd; /* of these two the program gets copies */
        int connections_fd;
};

/* Starts sqmgr-reader. The child exits with 126 or 127 if it cannot run the program. */
int reader_start_program(const struct reader_start *request, pid_t *ret);

/* Has a child connect the Unix socket at path, which may block, and send the descriptor or the error over
 * connections_fd. The child ends after 10 s. */
int reader_start_connect(int connections_fd, const char *path, pid_t *ret);

/* Starts sqmgr-proc-reader, the program opened with O_PATH, as that user. privileged: it keeps
 * CAP_SYS_PTRACE, and no other capability. *ret_fd is a socket that the caller owns. */
int proc_reader_start(int program_fd, const struct proc_reader_user *user, bool privileged, pid_t *ret_pid,
                      int *ret_fd);
