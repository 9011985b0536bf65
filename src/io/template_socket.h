/* SPDX-License-Identifier: MIT */
/* The sockets to a template and to the workers that it forks. What comes in is of a fleet's user's making:
 * its length is bounded, no descriptor is taken, and the kernel says whose it is.
 *
 * SOCK_SEQPACKET; a message is words, a NUL between two. Template: "ready", "version=1", and any number of
 * "unsafe=..." and "thread=...". We: "fork", NAME=VALUE entries and "log=...", with one descriptor: the new
 * worker's own socket. The worker: "hello", or "error", "errno=N" and a text; we: "go". */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

#define TEMPLATE_MESSAGE_MAX 4096

struct template_message {
        char text[TEMPLATE_MESSAGE_MAX + 1]; /* a NUL behind the last word */
        size_t length;
        pid_t pid; /* who sent it, as seen from here; 0: it cannot be seen */
        uid_t uid;
};

/* What a ready template says of itself. */
struct template_ready {
        char unsafe[256];  /* why it cannot be forked, the first of them; "": it can */
        char threads[256]; /* that it leaves behind, ", " between them; "": none. Both are printable */
};

/* A pair whose first end, ours, is non-blocking and learns who sends; the other is not left to programs,
 * either. Returns 0 or -errno. */
int template_socket_pair(int *ret_ours, int *ret_theirs);

/* Returns 1 with a message, 0 at the end of file, -EAGAIN, -EBADMSG for what is none of ours, or -errno. */
int template_socket_receive(int fd, struct template_message *ret);

bool template_message_is(const struct template_message *message, const char *word);
/* Returns false where it is no such message of a version that is known. */
bool template_message_ready(const struct template_message *message, struct template_ready *ret);
/* The same for an error. ret_errno: positive, 0 where it is no number; text is borrowed and printable. */
bool template_message_error(struct template_message *message, int *ret_errno, const char **ret_text);

struct template_fork {
        const char *fleet;
        unsigned index;
        uint64_t generation;
        uint64_t started_at; /* by which this start is known from all others */
        const char *log;     /* as the fleet's setting */
};

/* Asks for a worker, whose socket is worker_fd. Returns 0 or -errno. */
int template_socket_fork(int fd, const struct template_fork *fork, int worker_fd);
/* Tells it to go on. Returns 0 or -errno. */
int template_socket_go(int fd);
