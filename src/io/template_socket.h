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

#include "base/macro.h"
#include "wire/quoted.h"
#include <sys/types.h>

#define TEMPLATE_MESSAGE_MAX 4096

struct template_message {
        char text[TEMPLATE_MESSAGE_MAX + 1]; /* a NUL follows the last word */
        size_t length;
        pid_t pid; /* the sender's pid in our namespace; 0: not visible */
};

/* The properties that a ready template reports. */
struct template_ready {
        struct quoted unsafe;  /* the first reasons why the template cannot be forked; empty: none */
        struct quoted threads; /* threads that a fork leaves behind, separated by ", "; empty: none */
};

/* Creates a pair of sockets. Our end is non-blocking and receives the sender's credentials. Sets
 * close-on-exec on both ends. Returns 0 or -errno. */
int template_socket_pair(int *ret_ours, int *ret_theirs);

/* Returns 1 with a message, 0 if the peer has closed its end, -EAGAIN if no message is waiting, -EBADMSG for
 * an invalid message, or another -errno. Never waits. */
int template_socket_receive(int fd, struct template_message *ret);

/* Returns true if the first word of the message is word. */
bool template_message_is(const struct template_message *message, const char *word);
/* Parses a "ready" message. Returns false if the message is another one or has an unknown version. */
bool template_message_ready(const struct template_message *message, struct template_ready *ret);
/* Parses an "error" message. ret_errno is positive, or 0 if it is not a number. Returns false if the
 * message is another one. */
bool template_message_error(const struct template_message *message, int *ret_errno, struct quoted *ret_text);

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
