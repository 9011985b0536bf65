/* SPDX-License-Identifier: MIT */
/* Several questions to Redis, one or more of them, and one answer when all replies are in. A second round may
 * follow from it. */
#pragma once

#include <stddef.h>

struct redis_batch;
struct redis;
struct redisReply; /* hiredis's */

struct redis_batch_ops {
        /* The reply to the question that was given tag: as of redis_reply_fn, NULL where it failed. In it
         * everything is allowed, redis_batch_free() too. */
        void (*reply)(const struct redisReply *reply, size_t tag, void *userdata);
        /* The last reply is in. Called once, from the loop; where more is asked in it, once more when that is
         * answered. In it everything is allowed, too. */
        void (*done)(void *userdata);
};

/* ops must stay. Returns 0 with *ret to be freed by redis_batch_free(), or -ENOMEM. */
int redis_batch_new(const struct redis_batch_ops *ops, void *userdata, struct redis_batch **ret);
/* Nobody is called any more, whatever is under way; redis may be freed before or after. Takes NULL, and
 * returns it. */
struct redis_batch *redis_batch_free(struct redis_batch *redis_batch);

/* Asks with redis_command_forbiddable(), whose errors it returns: then no reply comes. tag: the caller's name
 * for the question. argvlen: as there. All are asked before the loop goes on. */
int redis_batch_add(struct redis_batch *redis_batch, struct redis *redis, size_t tag, int argc,
                    const char *const argv[], const size_t argvlen[]);
/* How many replies are still to come. Where it is 0 after the last was asked, none will, and done is not
 * called. */
size_t redis_batch_pending(const struct redis_batch *redis_batch);
