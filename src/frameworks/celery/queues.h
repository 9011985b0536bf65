/* SPDX-License-Identifier: MIT */
/* Reads the lengths of the queues that Celery workers consume. Redis has no list of the queues, so their
 * names come from the replies of the workers. A task carries no time at which it was queued: latencies are
 * estimates (latency.h). */
#pragma once

#include "frameworks/celery/latency.h"
#include "frameworks/celery/names.h"
#include "frameworks/live_format.h"

struct celery_queues; /* a reading in progress */

/* Calls back once from the loop when the ask was ended. The reading is freed after the callback. */
typedef void (*celery_queues_fn)(void *userdata);

/* Reads the queues that the query names, or those of waits->nodes, and ends the ask. names and waits must
 * stay valid. waits is forgotten if the reading fails. Returns the reading; NULL: the ask was ended, and done
 * is not called. */
struct celery_queues *celery_queues_read(struct redis *redis, const struct celery_names *names,
                                         struct celery_waits *waits, struct live_ask *ask,
                                         celery_queues_fn done, void *userdata);
/* Ends the ask as ANSWER_LOST. Accepts NULL. Returns NULL. */
struct celery_queues *celery_queues_free(struct celery_queues *reading);
