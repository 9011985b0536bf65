/* SPDX-License-Identifier: MIT */
/* Commands to Redis that one key is the subject of, and the texts in their replies. */
#pragma once

#include "base/field.h"
#include <hiredis/hiredis.h>
#include <stdbool.h>

#define HEARTBEATS_WORDS_MAX 11

/* A command to Redis. keys: those of its words that are owned. */
struct heartbeats_command {
        const char *argv[HEARTBEATS_WORDS_MAX];
        int argc;
        char *keys[2];
};

/* Words for command_make(): the command, and what follows its key. */
#define WORDS(...)                                                                                           \
        (const char *const[])                                                                                \
        {                                                                                                    \
                __VA_ARGS__, NULL                                                                            \
        }

/* words: NULL-terminated, one less than fit at most; they must stay. key: taken over. Returns 0 with *ret to
 * be given to command_clear(), or -ENOMEM where key is NULL. */
int command_make(struct heartbeats_command *ret, char *key, const char *const words[]);
/* The same of a command with two keys, or a key and a field of it. */
int command_make_pair(struct heartbeats_command *ret, const char *command, char *key, char *second);
/* Frees the keys. */
void command_clear(struct heartbeats_command *command);

/* The text of a reply; none where it is no text. */
static inline struct field reply_text(const redisReply *reply)
{
        return reply->type == REDIS_REPLY_STRING ? (struct field){.text = reply->str, .len = reply->len}
                                                 : (struct field){0};
}

/* The same of an element of a list; none where the reply is no list, or shorter. */
static inline struct field reply_element(const redisReply *reply, size_t i)
{
        return reply->type == REDIS_REPLY_ARRAY && i < reply->elements ? reply_text(reply->element[i])
                                                                       : (struct field){0};
}

/* The first n of them. */
static inline void reply_fields(const redisReply *reply, struct field fields[], size_t n)
{
        for (size_t i = 0; i < n; i++)
                fields[i] = reply_element(reply, i);
}

/* An error: the key holds another type than the command is for. */
bool reply_is_wrong_type(const redisReply *reply);
