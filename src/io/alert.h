/* SPDX-License-Identifier: MIT */
/* Starts the command that tells someone of an event. */
#pragma once

#include "base/macro.h"
#include <sys/resource.h>
#include <sys/types.h>

struct alert_request {
        char *const *argv;
        const char *user;     /* NULL: sqmgr's own */
        const char *input;    /* the line that it reads from its standard input */
        const char *event;    /* its SQMGR_EVENT, */
        const char *fleet;    /* SQMGR_FLEET, "" where there is none, */
        const char *worker;   /* and SQMGR_WORKER, the same */
        struct rlimit nofile; /* its limit of open files */
        unsigned seconds;     /* after these SIGALRM ends it, should nobody else be left to: a backstop */
};

/* Forks a child, in a process group of its own, that becomes the user and runs the command; what it writes
 * goes where sqmgr's own output goes, and so does the reason why it could not run: then it exits with 127. It
 * has no descriptors but those, and what it inherits of the environment is as for a worker. Never blocks.
 * Returns 0 with the child, to be waited for; or -errno, where nothing was started. */
int alert_start(const struct alert_request *request, pid_t *ret);
