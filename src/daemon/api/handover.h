/* SPDX-License-Identifier: MIT */
/* Passes sockets from one image of sqmgr to the next across execve(). The descriptor numbers are passed in
 * the environment. */
#pragma once

#include "daemon/api/api_server.h"
#include "daemon/runtime/runtime.h"

/* The listening socket, each connection once, and template sockets. Templates beyond this limit are loaded
 * anew. */
#define HANDOVER_MAX (1 + SERVER_CONNECTIONS_MAX + 256)

struct handover {
        struct handed list[HANDOVER_MAX];
        size_t n;
        bool taken; /* a previous image existed */
};

/* Marks all descriptors close-on-exec except these and the standard ones, and sets the environment variable.
 * Returns 0 or -errno. If no execve() follows, call handover_undo() in both cases. */
int handover_put(const struct handover *handover);
/* Marks the descriptors close-on-exec again, and unsets the environment variable. Keeps the descriptors
 * open. */
void handover_undo(const struct handover *handover);

/* Takes the descriptors of the previous image, if any. Unsets the variable, which workers must not
 * inherit. */
void handover_take(struct handover *ret);
/* Returns the first descriptor of this kind, or 0 if there is none. */
int handover_fd(const struct handover *handover, unsigned kind);
