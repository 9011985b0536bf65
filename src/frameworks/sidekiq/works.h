/* SPDX-License-Identifier: MIT */
/* Reads the work lists of some processes from one Redis, in one round trip. */
#pragma once

#include "io/redis.h"
#include "model/job.h"

struct works; /* a reading that is under way */

/* lists: one for each identity, in their order, until done returns: what is to stay is moved out of them.
 * error: NULL, or a sentence: then not all of them could be read. Called once, never from within
 * works_read(); the works is gone then. */
typedef void (*works_fn)(struct job_list *lists, const char *error, void *userdata);

/* Asks for the lists of n identities, at least one, and decodes them in slices, between which the loop goes
 * on. namespace: of redis-namespace, NULL or "" for none. redis may be freed meanwhile. Returns 0 with *ret;
 * -ENOTCONN, -ENOMEM or another -errno of sd-event: done is not called. */
int works_read(sd_event *event, struct redis *redis, const char *namespace, const char *const identities[],
               size_t n, works_fn done, void *userdata, struct works **ret);

/* Gives a reading up: done is not called any more. Takes NULL, and returns it. */
struct works *works_free(struct works *works);
