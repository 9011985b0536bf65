/* SPDX-License-Identifier: MIT */
/* The external interfaces of a Resque worker, versions 1.27 to 3: its keys in Redis and its process title.
 * Derived from `resque/worker.rb` and `resque/data_store.rb` in its sources. */
#pragma once

#include "frameworks/decode.h"
#include "frameworks/title.h"

struct heartbeat;
struct job;

extern const struct traits resque_traits;
extern const struct framework resque_framework;

/* Resque's namespace unless the application sets another. */
#define RESQUE_NAMESPACE "resque"

#define RESQUE_WORKERS    "workers"           /* the set of identities */
#define RESQUE_HEARTBEATS "workers:heartbeat" /* a hash: identity -> time of the last heartbeat */
#define RESQUE_PROCESSED  "stat:processed" /* with the identity appended: jobs done, failed ones included */
#define RESQUE_FAILED     "stat:failed"    /* with the identity appended: jobs that failed */
#define RESQUE_WORKER     "worker"         /* with the identity appended: the running job */

/* Like decode_key(), with Resque's own namespace if none is given. */
char *resque_key(const char *namespace, const char *name, const char *suffix);

/* Splits `HOST:PID:QUEUES`. Returns true with the length of the host at the start of text, and the pid. */
bool resque_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);

/* Decodes the time of a heartbeat, the only content of a heartbeat in Redis; the title has more. Returns
 * false if the field is not a time. */
bool resque_heartbeat_decode(const struct field *field, struct heartbeat *ret);

/* Parses `resque-VERSION: STATE`, after any text that RESQUE_PROCLINE_PREFIX puts before it. STATE of a
 * worker is `Waiting for QUEUES`, `Paused`, or `Forked PID at TIME` while a child runs its job. The
 * child's STATE is `Processing QUEUE since TIME [CLASS]`, as is that of a worker that runs its jobs
 * itself. Returns false for all else, including `resque: Starting` of a booting process. */
bool resque_title_parse(const char *title, struct title *ret);

/* Decodes the value of `resque:worker:IDENTITY`, for job_list_decode(). A job of ActiveJob is reported
 * with its own class and id. Other jobs have no id and are reported with `-`. */
int resque_job_decode(struct job *job);
