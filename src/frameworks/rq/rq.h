/* SPDX-License-Identifier: MIT */
/* What an RQ worker looks like from outside, from 1.0 to 2: its record in Redis, its process title, its
 * queues. */
#pragma once

#include "frameworks/decode.h"
#include "frameworks/title.h"

struct heartbeat;

extern const struct traits rq_traits;
extern const struct framework rq_framework; /* in rq_redis.c */

/* The set of the keys of all workers, and of those of all queues. */
#define RQ_WORKERS "rq:workers"
#define RQ_QUEUES  "rq:queues"

/* What one worker's record is found by: its host, its pid, its key. None of them need end with a NUL. */
struct rq_worker {
        struct field host, pid, key;
};

/* `HOST:PID:KEY`, by which the record is known from then on. To be freed. Returns NULL with *ret_error
 * -EINVAL for what is no RQ worker's, or -ENOMEM. */
char *rq_identity_make(const struct rq_worker *worker, int *ret_error);
/* Takes that apart: the length of the host at the start of text, and the pid. */
bool rq_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);
/* The key in an identity, NULL where that is none. */
const char *rq_identity_key(const char *identity);

/* Decodes a record. Only the time of its last beat must be there: a Redis that lost its data has no more of a
 * worker that lives on. Returns false where it is none, or of one that has ended. */
bool rq_heartbeat_decode(const struct field *state, const struct field *heartbeat,
                         const struct field *shutdown, const struct field *death, struct heartbeat *ret);

/* The name of a queue in its key: `rq:queue:NAME`. Returns its length at *ret, 0 where there is none. */
size_t rq_queue_name(const struct field *key, const char **ret);

/* `rq: Listening on ...` or `rq: Forked PID at ...`: set only where its application has what sets titles. The
 * process of a job, `rq: Processing ...`, is no worker. */
bool rq_title_parse(const char *title, struct title *ret);
