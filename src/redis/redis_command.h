/* SPDX-License-Identifier: MIT */
/* Redis commands on one key, the texts in their replies, and batches of commands: all are sent, and the end
 * is reported when all replies are in. A second batch may follow. */
#pragma once

#include "base/macro.h"
#include <hiredis/hiredis.h>

#define REDIS_COMMAND_WORDS_MAX 16

/* A Redis command. keys: the owned elements of argv. */
struct redis_command {
        const char *argv[REDIS_COMMAND_WORDS_MAX];
        int argc;
        char *keys[4];
};

/* An argument list for command_make(): the command and the arguments after its key. */
#define WORDS(...)                                                                                           \
        (const char *const[])                                                                                \
        {                                                                                                    \
                __VA_ARGS__, NULL                                                                            \
        }

/* words: NULL-terminated; must outlive the command; key and words together must fit into argv. key:
 * ownership passes to the command. Returns 0 with *ret, which the caller clears with command_clear();
 * -ENOMEM if key is NULL. */
int command_make(struct redis_command *ret, char *key, const char *const words[]);
/* Like command_make(), with a second owned argument: another key, or a field of key. Frees both on error. */
int command_make_pair(struct redis_command *ret, const char *command, char *key, char *second);
/* Appends `GET` and an owned pattern. Returns 0; or -ENOMEM, with command cleared, if pattern is NULL. */
int command_add_get(struct redis_command *command, char *pattern);
/* Frees the keys. */
void command_clear(struct redis_command *command);

/* The text of a reply; an empty field if the reply is not a string. */
static inline struct field reply_text(const redisReply *reply)
{
        return reply->type == REDIS_REPLY_STRING ? (struct field){.text = reply->str, .len = reply->len}
                                                 : (struct field){0};
}

/* The text of element i; an empty field if the reply is not an array or is shorter. */
static inline struct field reply_element(const redisReply *reply, size_t i)
{
        return reply->type == REDIS_REPLY_ARRAY && i < reply->elements ? reply_text(reply->element[i])
                                                                       : (struct field){0};
}

/* The texts of the first n elements. */
static inline void reply_fields(const redisReply *reply, struct field fields[], size_t n)
{
        for (size_t i = 0; i < n; i++)
                fields[i] = reply_element(reply, i);
}

/* True if this error reply says that the key has another type than the command needs. */
bool reply_is_wrong_type(const redisReply *reply);

struct redis_batch;
struct redis;

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
