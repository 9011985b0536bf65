/* SPDX-License-Identifier: MIT */
/* The sockets that one image of sqmgr leaves to the next, which an execve() puts in its place: their numbers
 * go through the environment. */
#pragma once

#include "daemon/api/server.h"
#include "daemon/workers/templates.h"

/* Of those beyond, other templates are loaded. */
#define HANDOVER_TEMPLATES_MAX 256

struct handover {
        int listen_fd;                    /* 0: none */
        int view_fd;                      /* the same of those who may only look */
        int idle[SERVER_CONNECTIONS_MAX]; /* connections that wait for nothing */
        size_t n_idle;
        int callers[SERVER_CONNECTIONS_MAX]; /* those that wait for the next image to answer */
        size_t n_callers;
        struct template_handed templates[HANDOVER_TEMPLATES_MAX];
        size_t n_templates;
        bool taken; /* there was an image before */
};

/* Closes all descriptors at an execve(), but not these. Returns 0 or -errno; handover_undo() is due in both
 * cases where no execve() follows. */
int handover_put(const struct handover *handover);
void handover_undo(const struct handover *handover);

/* Takes what the image before left, if there was one, and wipes its traces: workers must not inherit any. */
void handover_take(struct handover *ret);
