/* SPDX-License-Identifier: MIT */
/* Finds deaf workers: they send heartbeats and run no jobs. A worker is deaf if two heartbeats in a row say
 * that its loop that fetches jobs has not turned for hang_after, and that it runs no job; or if, for
 * hang_after,
 * - each of its heartbeats is fresh and shows no work;
 * - at each reading of the queues, jobs wait in a queue that it serves and that is not paused;
 * - jobs have left such a queue in between, three times at least and in the second half of that time, while
 *   another worker of the fleet that serves this queue began jobs.
 * What is unknown, an outage of Redis and a doubt about time begin that anew. A deaf worker stays deaf until
 * a heartbeat shows work. */
#pragma once

#include "base/macro.h"

struct fleet;
struct heartbeat;
struct queues;
struct worker;

/* More queues are not judged. */
#define DEAF_QUEUES_MAX 64

/* Records what a new heartbeat shows of the worker's work. */
void deaf_observe_heartbeat(struct worker *worker, const struct heartbeat *heartbeat, usec_t now);

/* An older heartbeat was answered again, or read late: one that shows work still contradicts that the worker
 * is deaf. */
void deaf_observe_repeated(struct worker *worker, const struct heartbeat *heartbeat);

/* Two readings in a row of the queues that a fleet serves. Borrowed for the call. */
struct deaf_reading {
        const struct queues *before; /* NULL: none */
        usec_t before_at;
        const struct queues *queues; /* as read now; NULL: not readable */
        /* Returns the names of the queues that the worker serves, see queue_names_have(); NULL: unknown. */
        const char *(*served)(const struct worker *worker);
};
void deaf_observe_queues(struct fleet *fleet, const struct deaf_reading *reading, usec_t now);

/* Returns true if a worker of the fleet shows no work while another one does, so that reading the queues may
 * find it deaf. */
bool deaf_is_suspected(const struct fleet *fleet, usec_t now);
