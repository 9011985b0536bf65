/* SPDX-License-Identifier: MIT */
/* The sockets that one image of sqmgr leaves to the next, which an execve() puts in its place: their numbers
 * go through the environment. */
#pragma once

#include "daemon/api/server.h"
#include "daemon/runtime/runtime.h"

/* The two that listen, each connection once, and the sockets of templates: those beyond are loaded anew. */
#define HANDOVER_MAX (2 + SERVER_CONNECTIONS_MAX + 256)

struct handover {
        struct handed list[HANDOVER_MAX];
        size_t n;
        bool taken; /* there was an image before */
};

/* Closes all descriptors at an execve(), but not these. Returns 0 or -errno; handover_undo() is due in both
 * cases where no execve() follows. */
int handover_put(const struct handover *handover);
void handover_undo(const struct handover *handover);

/* Takes what the image before left, if there was one, and wipes its traces: workers must not inherit any. */
void handover_take(struct handover *ret);
/* The first descriptor of that kind; 0: there is none. */
int handover_fd(const struct handover *handover, unsigned kind);
