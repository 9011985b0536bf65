/* SPDX-License-Identifier: MIT */
/* Reads the running jobs of processes from one Redis in one batch. Jobs may be large, so decoding runs in
 * slices. */
#pragma once

#include "model/job.h"
#include "wire/quoted.h"
#include <systemd/sd-event.h>

struct redis_command;
struct reader; /* servers/server.h */
struct redis;
struct redisReply; /* from hiredis */

/* How a framework stores the running jobs of a process in Redis. */
struct running_jobs_format {
        size_t n_asks; /* commands per process, at least one */
        /* Makes the command with index `which`. Returns 0 or -ENOMEM. */
        int (*ask)(const char *namespace, const char *identity, size_t which, struct redis_command *ret);
        /* Adds the entries of a reply, which is never an error reply. Returns 0 or -ENOMEM. */
        int (*take)(const struct redisReply *reply, size_t which, struct job_list *list);
        job_decode_fn decode;
};

/* A Redis server as its workers see it. */
struct running_jobs_request {
        sd_event *event;
        struct reader *reader; /* of the bytes that are decoded; NULL: not known */
        struct redis *redis;   /* may be freed during the reading */
        const char *namespace; /* of redis-namespace; NULL or "": none */
        const char *const *identities;
        size_t n;          /* number of identities, at least one */
        bool with_entries; /* the jobs keep their entries */
};

struct redis_running_jobs; /* a reading in progress */

/* lists: one per identity, in the same order, together within JOBS_MAX and JOBS_BYTES_MAX, which the callback
 * frees by job_lists_free(). error: NULL, or a
 * sentence: some lists could not be read. Called once from the loop, never from within
 * redis_running_jobs_read(). The reading frees itself after the callback, which must not call
 * redis_running_jobs_free(). */
typedef void (*redis_running_jobs_fn)(struct job_list *lists, const struct error_report *error,
                                      void *userdata);

/* Reads the lists in one round trip and decodes them in slices. The event loop runs between slices. format
 * must outlive the reading. Returns 0 with *ret; -ENOTCONN, -ENOMEM or another -errno of sd-event: done is
 * not called. */
int redis_running_jobs_read(const struct running_jobs_format *format,
                            const struct running_jobs_request *request, redis_running_jobs_fn done,
                            void *userdata, struct redis_running_jobs **ret);
/* Cancels a reading: done is not called. Takes NULL. Returns NULL. */
struct redis_running_jobs *redis_running_jobs_free(struct redis_running_jobs *running_jobs);
