/* SPDX-License-Identifier: MIT */
/* The sockets to a template and to the workers that it forks. Incoming data is controlled by the fleet's
 * user: its length is bounded, descriptors are rejected, and the kernel supplies the sender's identity.
 *
 * SOCK_SEQPACKET. A message is a list of words, separated by NULs:
 *
 *   template  "ready", "version=1", any number of "unsafe=..." and "thread=..."
 *   sqmgr     "fork", NAME=VALUE entries, "log=..."; with one descriptor, the new worker's socket
 *   worker    "hello"; or "error", "errno=N" and a text
 *   sqmgr     "go" */
#pragma once

#include "io/template_message.h"
#include <sys/types.h>

/* Creates a pair of sockets. Our end is non-blocking and receives the sender's credentials. Sets
 * close-on-exec on both ends. Returns 0 or -errno. */
int template_socket_pair(int *ret_ours, int *ret_theirs);

/* Returns 1 with a message, 0 if the peer has closed its end, -EAGAIN if no message is waiting, -EBADMSG for
 * an invalid message, or another -errno. Never waits. */
int template_socket_receive(int fd, struct template_message *ret);

struct template_fork {
        const char *fleet;
        unsigned index;
        uint64_t generation;
        uint64_t started_at; /* identifies this start */
        const char *log;     /* the fleet's setting `log` */
};

/* Requests a worker, whose socket is worker_fd. Returns 0 or -errno. */
int template_socket_fork(int fd, const struct template_fork *fork, int worker_fd);
/* Lets the worker proceed. Returns 0 or -errno. */
int template_socket_go(int fd);
