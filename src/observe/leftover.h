/* SPDX-License-Identifier: MIT */
/* A remote worker (worker_process.remote) that outlives the process that sqmgr started, as a container does
 * when its client is killed. Nobody supervises it any more, and a worker that replaces it has been started:
 * it is quieted, and stopped once it is idle. Its heartbeats alone show whether it lives. */
#pragma once

#include "model/fleet.h"

/* All zeroes but `since` at the beginning. */
struct leftover {
        usec_t since;          /* when its client ended */
        uint64_t written_usec; /* of the last heartbeat; 0: none was read yet */
        usec_t changed_at;     /* when a heartbeat was last seen to change; 0: never */
        unsigned idle_count;   /* changed heartbeats in a row that say quiet, 0 busy and an empty work list */
        unsigned unheeded;     /* changed heartbeats since the last signal that do not show that it arrived */
        bool signaled, stopped; /* any signal was sent; the stop signal was sent */
};

enum leftover_step {
        LEFTOVER_WAIT,
        LEFTOVER_QUIET, /* send the quiet signal */
        LEFTOVER_STOP,  /* send the stop signal */
        LEFTOVER_ENDED, /* sends heartbeats no more */
};

/* A reading of its heartbeat. heartbeat: NULL: there is none. The work list counts as empty only if known. A
 * heartbeat outlasts its process by a minute, so only changes show life; what the process left in its work
 * list can still be read when LEFTOVER_ENDED is returned. */
enum leftover_step leftover_observe(struct leftover *leftover, const struct fleet *fleet,
                                    const struct heartbeat *heartbeat, usec_t now);
