/* SPDX-License-Identifier: MIT */
/* Starts the program sqmgr-reader as a user without rights, and connects Unix sockets for it. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

struct reader_start {
        int program_fd; /* the program, opened with O_PATH */
        uid_t uid;      /* as root: the user of the program, with no further groups. Else our own stays */
        gid_t gid;
        int socket_fd; /* of these two the program gets copies, and no other descriptor */
        int connections_fd;
};

/* Starts the program, without an environment. Returns 0 with the pid of the child, which the caller must reap
 * and whose exit status is 126 or 127 if it could not run; or -errno. */
int reader_start_program(const struct reader_start *request, pid_t *ret);

/* Has a child connect the Unix socket at path, which may block, and send the descriptor or the error over
 * connections_fd. The child ends after 10 s. Returns as above. */
int reader_start_connect(int connections_fd, const char *path, pid_t *ret);
