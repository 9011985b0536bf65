/* SPDX-License-Identifier: MIT */
/* The external interfaces of an RQ worker, versions 1.0 to 2: its record in Redis, its process title, its
 * queues. */
#pragma once

#include "frameworks/decode.h"
#include "frameworks/title.h"

struct heartbeat;

extern const struct traits rq_traits;
extern const struct framework rq_framework;

/* The sets of the keys of all workers and of all queues. */
#define RQ_WORKERS "rq:workers"
#define RQ_QUEUES  "rq:queues"

/* The parts of a worker's identity: host, pid and key. The fields need no terminating NUL. */
struct rq_worker {
        struct field host, pid, key;
};

/* Returns the identity `HOST:PID:KEY`, which the caller frees. Returns NULL with *ret_error: -EINVAL if
 * the parts are not those of an RQ worker, or -ENOMEM. */
char *rq_identity_make(const struct rq_worker *worker, int *ret_error);
/* Splits an identity: the length of the host at the start of text, and the pid. Returns false if text is
 * not an identity. */
bool rq_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);
/* Returns the key, which points into identity; NULL if identity is invalid. */
const char *rq_identity_key(const char *identity);

/* The fields of a record. */
struct rq_record {
        struct field state, last_heartbeat, shutdown_requested_date, death, birth, successful, failed;
};

/* Decodes a record. Only the time of the last heartbeat is required: after a data loss in Redis, a live
 * worker writes no other field again. Counts of jobs are part of its outcomes.
 * Returns false if the record is invalid or the worker has ended. */
bool rq_heartbeat_decode(const struct rq_record *record, struct heartbeat *ret);

/* Extracts NAME from the key `rq:queue:NAME`. Returns the length of the name, with *ret set; 0: not a
 * queue's key. */
size_t rq_queue_name(const struct field *key, const char **ret);

/* Parses `rq: Listening on ...` and `rq: Forked PID at ...`; RQ 2 puts `rq:worker:NAME:` for `rq:`. RQ sets
 * titles only if the application has the library for that. The process of a job, `rq: Processing ...`, is not
 * a worker. */
bool rq_title_parse(const char *title, struct title *ret);
