/* SPDX-License-Identifier: MIT */
/* Estimates how long the tasks of a queue wait: a task of Celery has no time at which it was queued. The
 * estimate is length / rate. The rate is that of the tasks that the consumers of the queue have begun within
 * about a minute, by the counters in their events. A node that consumes several queues counts in full for
 * each of them, and prefetched tasks are not in the queue, so the estimate is low. Pure: times are of the
 * monotonic clock. */
#pragma once

#include "frameworks/celery/nodes.h"
#include "model/queues.h"

/* Longer estimates are cut. */
#define CELERY_LATENCY_MAX (365 * USEC_PER_DAY)
/* Queues with tasks whose times are kept. Beyond that, the one that was read least recently is forgotten. */
#define CELERY_WAITS_MAX 128

/* Since when the tasks of queues wait without progress. Starts zeroed, apart from nodes. */
struct celery_waits {
        const struct celery_nodes *nodes; /* the consumers */
        struct celery_wait {
                char name[QUEUE_NAME_MAX + 1];
                usec_t since;   /* first read non-empty, or a later begin of any task by its consumers */
                usec_t read_at; /* 0: unused */
        } list[CELERY_WAITS_MAX];
};

/* Forgets these times: readings or events may have been missed. */
void celery_waits_forget(struct celery_waits *waits);

/* Sets the latencies of queues, which are sorted by name and have their sizes:
 *
 * - an empty queue: 0;
 * - no consumer with enough data: unknown;
 * - nothing was begun within the window: the time without progress;
 * - otherwise: size / rate. */
void celery_waits_judge(struct celery_waits *waits, struct queues *queues, usec_t now);
