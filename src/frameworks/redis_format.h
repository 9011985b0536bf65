/* SPDX-License-Identifier: MIT */
/* How a framework keeps its data in Redis, as the reader process needs it. */
#pragma once

#include <stddef.h>

struct heartbeat_format;    /* frameworks/heartbeat_format.h */
struct running_jobs_format; /* frameworks/redis_running_jobs.h */
struct queues_format;       /* frameworks/queue_reader.h */
struct requeue_format;      /* frameworks/requeue.h */
struct traits;

struct redis_format {
        const struct traits *traits;
        const struct heartbeat_format *heartbeats;      /* NULL: only the queues are in Redis */
        const struct running_jobs_format *running_jobs; /* NULL if the traits have no work list */
        const struct queues_format *queues;             /* NULL: queues are unknown */
        const struct requeue_format *requeue;           /* NULL if the traits have no rescue */
        /* The suffix of the key, beside that of an identity, with the list of signals that its process takes
         * from the end, one at each heartbeat. NULL if not traits.signals_by_server. */
        const char *signals_suffix;
};

extern const struct redis_format sidekiq_redis_format, native_redis_format, rq_redis_format,
        resque_redis_format, celery_redis_format, bullmq_redis_format;

/* Returns the format of the framework with this id (struct traits); NULL: it has none. */
const struct redis_format *redis_format_of(unsigned id);
