/* SPDX-License-Identifier: MIT */
/* The Celery workers ("nodes") that the reader has heard of, by their events and their replies. Pure: times
 * are of the monotonic clock and are handed in. */
#pragma once

#include "base/usec.h"
#include "frameworks/celery/message.h"
#include "frameworks/celery/rates.h"
#include "model/job.h"

/* The table is bounded, since anybody who may publish can invent nodes. */
#define CELERY_NODES_MAX 4096
/* A node that was not heard for this long is forgotten. */
#define CELERY_FORGET_USEC (60 * USEC_PER_SEC)
/* A worker that connects again says offline, and online within this time. */
#define CELERY_STOPPING_USEC (5 * USEC_PER_SEC)
/* A process that sends heartbeats is heard every 2 s. */
#define CELERY_SILENT_USEC (7 * USEC_PER_SEC)

struct celery_node {
        struct celery_node *next; /* in its bucket */
        char *identity;           /* owned */
        const char *name;         /* points into identity */
        size_t host_len;
        pid_t pid;

        /* From events: */
        usec_t heard_at;    /* the last event of any type */
        usec_t counted_at;  /* arrival of the last heartbeat with counts; 0: none */
        uint64_t sent_usec; /* of that heartbeat, by the wall clock of the worker */
        uint64_t active;    /* tasks that ran then */
        uint64_t processed; /* tasks that had begun by then */
        uint64_t peak;      /* the most tasks that ran in any heartbeat */
        struct celery_work work;
        bool was_quiet;    /* a reply from before that heartbeat showed that no queue was consumed */
        usec_t offline_at; /* since when its events are worker-offline only; 0: they are not */

        /* From replies. Times are those of the request: */
        usec_t queues_at; /* 0: not known, or not since the worker has connected again */
        char *queues;     /* owned; each name ends with a NUL, the list with two; NULL: none */
        usec_t reserved_at;
        size_t n_reserved; /* tasks that waited in the worker */
        usec_t active_at;
        size_t n_active;      /* tasks that ran */
        struct job_list jobs; /* the running tasks, if keeps_jobs */
        bool keeps_jobs;

        usec_t waits_since; /* when the first request without a reply was sent; 0: none; of the owner */
        unsigned wants;     /* requests that are to be sent to it; of the owner */
        bool is_to_quiet;   /* cancel the queues that it consumes; of the owner */
        usec_t doubled_at;  /* when one request was replied to twice; 0: never */
};

struct celery_nodes {
        struct celery_node *buckets[1024];
        size_t n;
        usec_t expired_at; /* when nodes were last forgotten */
};

void celery_nodes_clear(struct celery_nodes *nodes);

/* Folds an event into its node, which is added if there is room. Returns 0; -EINVAL if the node cannot have
 * an identity; -ENOBUFS if there is no room; or -ENOMEM. */
int celery_nodes_hear(struct celery_nodes *nodes, const struct celery_event *event, usec_t now);
/* Forgets the nodes that are silent. */
void celery_nodes_expire(struct celery_nodes *nodes, usec_t now);
/* Events and replies may have been missed: forgets which queues the nodes consume, what they have begun, and
 * since when they have not replied. */
void celery_nodes_missed(struct celery_nodes *nodes);

/* Folds a reply to a request that was sent at asked_at. readable: false if the lists of the reply cannot be
 * read: they count as one task. Returns the node; NULL: none that is heard, or several with this name: the
 * reply is ignored. Takes what it keeps out of reply. */
struct celery_node *celery_nodes_reply(struct celery_nodes *nodes, struct celery_reply *reply, bool readable,
                                       usec_t asked_at, usec_t now);

/* Returns the node with this identity; NULL: none. */
struct celery_node *celery_nodes_find(const struct celery_nodes *nodes, const char *identity);
/* Returns true if another process has the same name: both execute each request, and replies show only the
 * name. So it is if two processes are heard, or if one request was replied to twice lately: another host may
 * have processes of the same names and pids. */
bool celery_node_is_shared(const struct celery_nodes *nodes, const struct celery_node *node, usec_t now);
/* Returns true if the node was asked to exit, by whomever: it has said offline, and nothing since. */
static inline bool celery_node_is_stopping(const struct celery_node *node, usec_t now)
{
        return node->offline_at != 0 && usec_sub(now, node->offline_at) >= CELERY_STOPPING_USEC;
}
/* Returns the most tasks that this node was seen to run at once, or a node of the same fleet and host
 * (FLEET-NUMBER@HOST): events do not show the size of the pool. 0: none was seen. */
uint64_t celery_nodes_peak(const struct celery_nodes *nodes, const struct celery_node *node);
/* Returns true if the node sends events, and has not said that it is offline. */
static inline bool celery_node_is_heard(const struct celery_node *node, usec_t now)
{
        return node->offline_at == 0 && usec_sub(now, node->heard_at) <= CELERY_SILENT_USEC;
}
/* Returns true if a reply shows that the node consumes no queue. */
static inline bool celery_node_is_quiet(const struct celery_node *node)
{
        return node->queues_at != 0 && !node->queues;
}

/* Iterates over all nodes. The current one may not be removed. */
#define CELERY_NODES_FOREACH(nodes, node)                                                                    \
        for (size_t _bucket = 0; _bucket < ELEMENTSOF((nodes)->buckets); _bucket++)                          \
                for (struct celery_node *node = (nodes)->buckets[_bucket]; node; node = node->next)
