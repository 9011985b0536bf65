/* SPDX-License-Identifier: MIT */
/* The external interfaces of a process that runs workers of BullMQ, versions 5 and 6.
 *
 * BullMQ keeps no record of its workers. Redis shows the names of their connections, and the
 * lists of active jobs. Each Worker has a connection of its own to wait for jobs, which BullMQ names
 * `PREFIX:BASE64(QUEUE):w:NAME`. The application gives the same NAME to all workers of a process:
 * `HOST:PID`, which is the identity. BullMQ also writes NAME into each job that a worker takes. */
#pragma once

#include "base/field.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct job;
struct queues_format;

extern const struct traits bullmq_traits;
extern const struct framework bullmq_framework;
extern const struct live_format bullmq_live_format;
extern const struct queues_format bullmq_queues;

/* BullMQ's prefix of names and keys unless the application sets another. */
#define BULLMQ_PREFIX "bull"

/* The limit of BullMQ's times, which are in milliseconds. */
#define BULLMQ_TIME_MAX_MSEC (UINT64_MAX / 4 / 1000)

/* Returns the prefix: the namespace if there is one. */
const char *bullmq_prefix(const char *namespace);

/* Splits `HOST:PID`. Returns true with the length of the host at the start of text, and the pid. */
bool bullmq_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);

/* Returns `PREFIX:QUEUE:SUFFIX`, or only name if there is no queue, as the key of struct queues_format. The
 * caller frees the result; NULL: out of memory. */
char *bullmq_key(const char *namespace, const char *name, const char *queue);

/* The entry of a running job in a job list, of which each text but the last ends with a NUL: queue, id, name,
 * and the time at which it began in milliseconds. The caller frees the result; NULL: out of memory. */
char *bullmq_job_entry(const char *queue, const struct field texts[static 3], size_t *ret_len);
/* Decodes such an entry, for job_list_decode(). */
int bullmq_job_decode(struct job *job);
