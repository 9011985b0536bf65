/* SPDX-License-Identifier: MIT */
/* What a Resque worker looks like from outside, from 1.27 to 3: its keys in Redis, its process title. Read in
 * its sources, of which `resque/worker.rb` and `resque/data_store.rb` say it. */
#pragma once

#include "frameworks/decode.h"
#include "frameworks/title.h"

struct heartbeat;
struct job;

extern const struct traits resque_traits;
extern const struct framework resque_framework; /* in resque_redis.c */

/* The namespace that Resque is in unless its application names another. */
#define RESQUE_NAMESPACE "resque"

#define RESQUE_WORKERS    "workers"           /* the set of identities */
#define RESQUE_HEARTBEATS "workers:heartbeat" /* a hash: by identity, the time of the last beat */
#define RESQUE_WORKER     "worker"            /* with the identity behind it: the job that it runs */

/* As decode_key(), in its own namespace where none is given. */
char *resque_key(const char *namespace, const char *name, const char *suffix);

/* Takes apart `HOST:PID:QUEUES`. Returns true with the length of the host at the start of text, and the pid.
 */
bool resque_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);

/* Decodes the time of a beat, which is all that one tells: the rest stands in the title. Returns false where
 * it is none. */
bool resque_heartbeat_decode(const struct field *field, struct heartbeat *ret);

/* `resque-VERSION: WHAT`, with whatever RESQUE_PROCLINE_PREFIX puts before it; of a process that still boots,
 * `resque: Starting`, it is none. A worker is `Waiting for QUEUES`, `Paused`, or `Forked PID at TIME` while a
 * child runs its job; that child is `Processing QUEUE since TIME [CLASS]`, as is a worker that runs its jobs
 * itself. Returns false for all else. */
bool resque_title_parse(const char *title, struct title *ret);

/* Decodes what stands at `resque:worker:IDENTITY`: for job_list_decode(). A job of ActiveJob's is told by its
 * own class and id; no other has an id, and is told with `-`. */
int resque_job_decode(struct job *job);
