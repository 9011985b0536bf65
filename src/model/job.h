/* SPDX-License-Identifier: MIT */
/* Jobs as the work lists of Sidekiq's processes tell of them. */
#pragma once

#include "frameworks/sidekiq/format.h"

/* One job that a process was running at its last beat. All texts are owned, and end with a NUL. Up to
 * entry_len it is known before it is decoded. */
struct job {
        bool old_key;          /* of the work list: `workers` instead of `work` */
        char *thread;          /* Sidekiq's name of it: the field in the work list */
        char *entry;           /* what stands in that field */
        size_t entry_len;      /* a NUL within it is possible */
        char *payload;         /* what stood in the queue */
        char *queue;           /* without `queue:` */
        char *class;           /* of an ActiveJob its own, not that of its wrapper */
        char *jid;             /* its id */
        uint64_t started_usec; /* by the worker's wall clock, told in whole seconds; 0: not told */
};

/* Filled in two steps, since arguments of jobs may be large, and decoding them takes long. */
struct job_list {
        struct job *jobs; /* owned */
        size_t n_jobs;    /* decoded: the first ones */
        size_t n_unreadable;
        size_t next, n_entries; /* from next on they are yet to be decoded */
        size_t allocated;
};

/* Adds an entry of a work list. Returns 0, or -ENOMEM. */
int job_list_add(struct job_list *list, bool old_key, const struct sidekiq_field *thread,
                 const struct sidekiq_field *entry);
/* Decodes entries until as many bytes of them are done, which *bytes is lowered by; one that tells of no job
 * is only counted. Returns 0: all are done; 1: some are left; or -ENOMEM: it can be tried again. */
int job_list_decode(struct job_list *list, size_t *bytes);
void job_list_clear(struct job_list *list);

/* How long the oldest has been running, in microseconds; 0: none, or none tells. now_usec: by the wall clock.
 */
usec_t job_list_oldest(const struct job_list *list, uint64_t now_usec);

/* Has it been running for longer than its class may, by limits (settings/limits.h, NULL: none)? now_usec: by
 * the wall clock. *ret_usec: for how long. */
bool job_is_long(const struct job *job, const char *limits, uint64_t now_usec, usec_t *ret_usec);

/* The payload with the reason for which the job was given up, as Sidekiq's dead set has it; error_class and
 * error_message are what its web page shows. now_usec: by the wall clock. To be freed; NULL: memory is short.
 */
char *job_dead_payload(const struct job *job, const char *error_class, const char *error_message,
                       uint64_t now_usec);
