/* SPDX-License-Identifier: MIT */
/* Reads what processes run from one Redis, all in one round trip, and decodes it in slices: jobs may be
 * large.
 */
#pragma once

#include "frameworks/framework.h"

/* How what one process runs stands in Redis. */
struct works_format {
        size_t n_asks; /* commands for each process, at least one */
        /* The command of this number. Returns 0 or -ENOMEM. */
        int (*ask)(const char *namespace, const char *identity, size_t which, struct beats_command *ret);
        /* Adds the entries that its reply holds, which is no error. Returns 0 or -ENOMEM. */
        int (*take)(const struct redisReply *reply, size_t which, struct job_list *list);
        job_decode_fn decode;
};

/* For works_ops: read() with a format, which must outlive the works, and free(). */
int redis_works_read(const struct works_format *format, const struct works_request *request, works_fn done,
                     void *userdata, struct works **ret);
struct works *redis_works_free(struct works *works);
