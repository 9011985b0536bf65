/* SPDX-License-Identifier: MIT */
/* Decides what to read of a worker at a poll, and whether a fleet needs fast polls. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct fleet;
struct worker;

/* The items to read of a worker; see worker_poll_items(). */
enum poll_item {
        POLL_HEARTBEAT = 1 << 0, /* the heartbeat, or its identity while unknown */
        POLL_WORK_LIST = 1 << 1, /* whether the work list is empty */
        POLL_MEMORY = 1 << 2,
        POLL_THREADS = 1 << 3,    /* the number of job threads */
        POLL_TITLE = 1 << 4,      /* the process title */
        POLL_BOOT = 1 << 5,       /* whether titles or threads of its processes show that it has booted */
        POLL_ARGUMENTS = 1 << 6,  /* whether their arguments show how long it may take to exit */
        POLL_SIBLINGS = 1 << 7,   /* whether another process of it sends heartbeats too */
        POLL_OWN_MEMORY = 1 << 8, /* the memory that it shares with no other process */
        POLL_PEERS = 1 << 10,     /* the servers that it is connected to */
        POLL_ELSEWHERE =
                1 << 9, /* whether its title shows that it has booted, before boot_timeout has passed */
};

/* Returns the items (enum poll_item) to read of this worker now. fast: at a fast poll, else at a regular one.
 * 0: nothing. */
unsigned worker_poll_items(const struct worker *worker, bool fast, usec_t now);

/* Returns true while something is in transition: poll about 4 times a second. */
bool fleet_wants_fast_polls(const struct fleet *fleet, usec_t now);
