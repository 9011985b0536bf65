/* SPDX-License-Identifier: MIT */
/* Puts the installed sqmgr in the place of the one that runs: same process, same children, same socket. */
#pragma once

#include "daemon/api/server.h"
#include "daemon/lifecycle/termination.h"
#include "daemon/takeover/persist.h"

/* How sqmgr was called; it is called so again. */
struct invocation {
        const char *program; /* the path that was executed, absolute */
        char **argv;
        const char *config_path;
};

struct reexec {
        const struct invocation *invocation; /* not owned; nor are those below, down to server */
        struct runtime *runtime;
        struct persist *persist;
        const struct termination *termination;
        struct server *server;

        struct child child;      /* the new program, while it is asked; pid 0: it is not */
        sd_event_source *output; /* what it writes; NULL: that has ended */
        sd_event_source *deadline;
        char words[2048]; /* what it wrote */
        size_t length;
        struct call *calls[16]; /* to be answered: here, or by the new image */
        size_t n_calls;
};

/* Has the new program asked whether it takes the settings and the state, and puts it in the place of this one
 * then. The new image answers the call, or this one where it cannot be; NULL: a signal asked. */
void reexec_request(struct reexec *reexec, struct call *call);
/* Once no call waits for it. */
void reexec_end(struct reexec *reexec);
