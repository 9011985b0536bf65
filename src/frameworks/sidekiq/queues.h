/* SPDX-License-Identifier: MIT */
/* Reads the queues of one Redis, in two round trips. */
#pragma once

#include "io/redis.h"
#include "model/queues.h"

/* Beyond so many queues the others are left out, and counted. */
#define QUEUES_READ_MAX 1000

struct queues_read;

/* Called once, from the loop, with queues that are taken over; NULL: they could not be read, since Redis went
 * away, did not answer in time, or refused, which error says in a sentence that lives as long as the read.
 * That is to be freed, in it or later. */
typedef void (*queues_read_fn)(struct queues *queues, const char *error, void *userdata);

/* Begins to read; namespace: of redis-namespace, NULL or "" for none. redis must outlive it. Returns 0 with
 * *ret to be freed by queues_read_free(); -ENOTCONN or -ENOMEM. */
int queues_read_start(struct redis *redis, const char *namespace, queues_read_fn callback, void *userdata,
                      struct queues_read **ret);

/* Nobody is called any more. Returns NULL. */
struct queues_read *queues_read_free(struct queues_read *read);
