/* SPDX-License-Identifier: MIT */
/* How a framework keeps its data in Redis, as the reader process needs it. */
#pragma once

#include <stddef.h>

struct heartbeat_format;    /* frameworks/heartbeat_format.h */
struct running_jobs_format; /* frameworks/redis_running_jobs.h */
struct queues_format;       /* frameworks/queue_reader.h */
struct requeue_format;      /* frameworks/requeue.h */
struct live_format;         /* frameworks/live_format.h */
struct traits;
struct field; /* base/field.h */

struct redis_format {
        const struct traits *traits;
        /* Either heartbeats or live is set. */
        const struct heartbeat_format *heartbeats;      /* the workers write records */
        const struct live_format *live;                 /* the reader observes the workers */
        const struct running_jobs_format *running_jobs; /* NULL if the traits have no work list, or
                                                         * if live answers QUERY_JOBS */
        const struct queues_format *queues;             /* NULL: queues are unknown */
        const struct requeue_format *requeue;           /* NULL if the traits have no rescue */
        /* The suffix of the key, beside that of an identity, with the list of signals that its process takes
         * from the end, one at each heartbeat. NULL if not traits.signals_by_server. */
        const char *signals_suffix;
        /* Counts, in the reply to CLIENT LIST, the connections of workers whose name does not show their
         * process. NULL: the names of connections mean nothing. */
        size_t (*count_nameless)(const struct field *clients, const char *namespace, unsigned database);
};

extern const struct redis_format sidekiq_redis_format, native_redis_format, rq_redis_format,
        resque_redis_format, celery_redis_format, bullmq_redis_format;

/* Returns the format of the framework with this id (struct traits); NULL: it has none. */
const struct redis_format *redis_format_of(unsigned id);
