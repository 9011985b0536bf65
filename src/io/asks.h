/* SPDX-License-Identifier: MIT */
/* Several questions to Redis, one or more of them, and one answer when all replies are in. A second round may
 * follow from it. */
#pragma once

#include <stddef.h>

struct asks;
struct redis;
struct redisReply; /* hiredis's */

struct asks_ops {
        /* The reply to the question that was given tag: as of redis_reply_fn, NULL where it failed. In it
         * everything is allowed, asks_free() too. */
        void (*reply)(const struct redisReply *reply, size_t tag, void *userdata);
        /* The last reply is in. Called once, from the loop; where more is asked in it, once more when that is
         * answered. In it everything is allowed, too. */
        void (*done)(void *userdata);
};

/* ops must stay. Returns 0 with *ret to be freed by asks_free(), or -ENOMEM. */
int asks_new(const struct asks_ops *ops, void *userdata, struct asks **ret);
/* Nobody is called any more, whatever is under way; redis may be freed before or after. Takes NULL, and
 * returns it. */
struct asks *asks_free(struct asks *asks);

/* Asks with redis_command_forbiddable(), whose errors it returns: then no reply comes. tag: the caller's name
 * for the question. argvlen: as there. All are asked before the loop goes on. */
int asks_add(struct asks *asks, struct redis *redis, size_t tag, int argc, const char *const argv[],
             const size_t argvlen[]);
/* How many replies are still to come. Where it is 0 after the last was asked, none will, and done is not
 * called. */
size_t asks_pending(const struct asks *asks);
