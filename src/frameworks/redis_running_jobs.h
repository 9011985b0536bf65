/* SPDX-License-Identifier: MIT */
/* Reads what processes run from one Redis, all in one round trip, and decodes it in slices: jobs may be
 * large.
 */
#pragma once

#include "model/job.h"
#include <systemd/sd-event.h>

struct heartbeats_command;
struct redis;
struct redisReply; /* hiredis's */

/* How what one process runs stands in Redis. */
struct running_jobs_format {
        size_t n_asks; /* commands for each process, at least one */
        /* The command of this number. Returns 0 or -ENOMEM. */
        int (*ask)(const char *namespace, const char *identity, size_t which, struct heartbeats_command *ret);
        /* Adds the entries that its reply holds, which is no error. Returns 0 or -ENOMEM. */
        int (*take)(const struct redisReply *reply, size_t which, struct job_list *list);
        job_decode_fn decode;
};

/* One Redis as the workers see it. */
struct running_jobs_request {
        sd_event *event;
        struct redis *redis;   /* may be freed meanwhile */
        const char *namespace; /* of redis-namespace, NULL or "" for none */
        const char *const *identities;
        size_t n; /* of them, at least one */
};

struct running_jobs; /* a reading of work lists that is under way */

/* lists: one for each identity, in their order, until done returns: what is to stay is moved out of them.
 * error: NULL, or a sentence: then not all of them could be read. Called once, never from
 * within redis_running_jobs_read(); the works is gone then. */
typedef void (*running_jobs_fn)(struct job_list *lists, const char *error, void *userdata);

/* Reads the lists in one round trip, and decodes them in slices, between which the loop goes on. format must
 * outlive the works. Returns 0 with *ret; -ENOTCONN, -ENOMEM or another -errno of sd-event: done is not
 * called. */
int redis_running_jobs_read(const struct running_jobs_format *format,
                            const struct running_jobs_request *request, running_jobs_fn done, void *userdata,
                            struct running_jobs **ret);
/* Gives a reading up: done is not called any more. Takes NULL, and returns it. */
struct running_jobs *redis_running_jobs_free(struct running_jobs *running_jobs);
