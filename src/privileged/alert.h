/* SPDX-License-Identifier: MIT */
/* Starts alert_command for an event. */
#pragma once

#include "base/macro.h"
#include <sys/resource.h>
#include <sys/types.h>

struct alert_request {
        char *const *argv;
        const char *user;     /* NULL: sqmgr's own user */
        const char *input;    /* the line for the command's standard input, without newline */
        const char *event;    /* value of SQMGR_EVENT */
        const char *fleet;    /* value of SQMGR_FLEET; "": none */
        const char *worker;   /* value of SQMGR_WORKER; "": none */
        struct rlimit nofile; /* limit of open files */
        unsigned seconds; /* a backstop: SIGALRM ends the command after this time, even if sqmgr is gone */
};

/* Forks a child in a session of its own, which becomes the user and runs the command. The command writes to
 * sqmgr's own output. If the command cannot run, the child writes the reason there and exits with status 127.
 * All other descriptors are closed. The environment is inherited as by environment_put_inherited(). Never
 * blocks.
 *
 * Returns 0 with the pid of the child, which the caller must reap; or -errno if nothing was started. */
int alert_start(const struct alert_request *request, pid_t *ret);
