/* SPDX-License-Identifier: MIT */
/* Starts the reader programs and sqmgr-proc-reader, and connects Unix sockets for sqmgr-reader.
 *
 * A program gets no environment. Standard descriptors are /dev/null; the sockets named here follow from 3 on.
 * All functions return 0 with the pid of a child that the caller reaps, or -errno. No function waits. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

struct reader_start {
        int program_fd;   /* the program, opened with O_PATH */
        const char *name; /* of the program */
        int socket_fd;    /* the program gets a copy as 3 */
};

/* Starts a reader program. The child exits with 126 or 127 if it cannot run the program. */
int reader_start_program(const struct reader_start *request, pid_t *ret);

/* Starts sqmgr-proc-reader, the program opened with O_PATH. *ret_fd is our end of its socket, which the
 * caller owns. */
int proc_reader_start(int program_fd, pid_t *ret_pid, int *ret_fd);
