/* SPDX-License-Identifier: MIT */
/* Sends a batch of commands to Redis and reports when all replies are in. A second batch may follow. */
#pragma once

#include <stddef.h>

struct redis_batch;
struct redis;
struct redis_command;
struct redisReply; /* of hiredis */

struct redis_batch_ops {
        /* The reply to the command with that tag, as in redis_reply_fn: NULL if the command failed. The
         * callback may do anything, including redis_batch_free(). */
        void (*reply)(const struct redisReply *reply, size_t tag, void *userdata);
        /* Called once from the loop after the last reply. If the callback adds commands, done() is called
         * again after their replies. The callback may do anything, including redis_batch_free(). */
        void (*done)(void *userdata);
};

/* Creates an empty batch. ops must stay valid. Returns 0 with *ret to be freed by redis_batch_free(), or
 * -ENOMEM. */
int redis_batch_new(const struct redis_batch_ops *ops, void *userdata, struct redis_batch **ret);
/* Frees the batch. No callback follows, even for pending commands. redis may be freed before or after.
 * Accepts NULL; returns NULL. */
struct redis_batch *redis_batch_free(struct redis_batch *redis_batch);

/* Sends a command with redis_command_forbiddable(), and returns its errors; after an error no reply follows.
 * tag identifies the reply. Add all commands before returning to the loop. */
int redis_batch_add(struct redis_batch *redis_batch, struct redis *redis, size_t tag,
                    const struct redis_command *command);
/* Returns the number of pending replies. If 0 after the last command was added, no reply and no done() will
 * follow. */
size_t redis_batch_pending(const struct redis_batch *redis_batch);
