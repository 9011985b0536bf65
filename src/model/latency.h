/* SPDX-License-Identifier: MIT */
/* Estimates how long jobs wait in queues whose jobs carry no time: the length of a queue, divided by the jobs
 * per second that the workers of its fleets have ended within about a minute. A worker that serves several
 * queues counts in full for each of them, and jobs that a worker holds ahead are not in the queue, so the
 * estimate is low. Pure: times are of the monotonic clock. */
#pragma once

#include "base/usec.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queues;

/* The window of a rate has two parts of this length: the one before is complete, the current one is not. */
#define LATENCY_PART_USEC (30 * USEC_PER_SEC)
/* Less than this gives no rate. */
#define LATENCY_LEAST_USEC (10 * USEC_PER_SEC)
/* Queues that were not read for longer may have been empty meanwhile. */
#define LATENCY_UNREAD_USEC (2 * USEC_PER_MIN)
/* Longer estimates are cut. */
#define LATENCY_MAX_USEC (365 * USEC_PER_DAY)

/* The jobs that the workers of one fleet have ended. Starts zeroed. */
struct latency_work {
        usec_t since[2];   /* start of the part before, and of the current one; 0: none */
        uint64_t ended[2]; /* jobs in these parts */
        usec_t moved_at;   /* when a job ended, or none was found to wait; 0: never */
        usec_t read_at;    /* the last reading of the fleet's queues; 0: none */
};

/* Records that a worker of the fleet has reported `ended` jobs since its last report. The first report only
 * starts the window. */
void latency_count(struct latency_work *work, uint64_t ended, usec_t now);

/* The progress of one queue. Starts zeroed. */
struct latency_flow {
        bool known;
        double rate; /* jobs per second */
        usec_t moved_at;
};

/* Adds a fleet that serves these queues (queue_names_have()) to flows, an element for each of queues, which
 * have their sizes. Has no effect if the fleet serves none of them. */
void latency_add(struct latency_flow *flows, const struct queues *queues, struct latency_work *work,
                 const char *served, usec_t now);

/* Sets the latencies once all fleets are added:
 *
 * - an empty queue: 0;
 * - no fleet with enough data: unknown;
 * - no job has ended within the window: the time since one has, or since none waited;
 * - otherwise: size / rate. */
void latency_judge(struct queues *queues, const struct latency_flow *flows, usec_t now);
