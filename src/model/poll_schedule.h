/* SPDX-License-Identifier: MIT */
/* What is to be read of a worker at a poll, and whether a fleet is polled more often. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct fleet;
struct worker;

/* What the shell is asked to read of a worker; see worker_poll_items(). */
enum poll_item {
        POLL_HEARTBEAT = 1 << 0, /* its heartbeat, or where its identity is unknown, that */
        POLL_WORK_LIST = 1 << 1, /* is its work list empty? */
        POLL_MEMORY = 1 << 2,
        POLL_THREADS = 1 << 3,   /* how many job threads it has */
        POLL_TITLE = 1 << 4,     /* its process title */
        POLL_BOOT = 1 << 5,      /* do titles or threads of its tree show that it has booted? */
        POLL_ARGUMENTS = 1 << 6, /* do they show how long it may take to exit? */
        POLL_SIBLINGS = 1 << 7,  /* does another process of it beat, too? */
};

/* What to read of this worker now: looks (enum poll_item) that are due at a regular look or, where fast, at
 * one of those in between. 0: nothing. */
unsigned worker_poll_items(const struct worker *worker, bool fast, usec_t now);

/* Something is in transition: look about 4 times a second. */
bool fleet_wants_fast_polls(const struct fleet *fleet, usec_t now);
