/* SPDX-License-Identifier: MIT */
/* Runs the script of rollouts for sqmgr. */
#include "model/group_key.h"
#include "reader/redis_ask.h"
#include "rollout_hosts/hmac.h"
#include "rollout_hosts/script_rules.h"
#include <stdio.h>
#include <string.h>

#define ARGUMENTS_MAX 16

/* Returns a key of the group of the query; NULL: memory is short. */
static char *key_of(const struct ask *ask, const char *suffix, const char *host)
{
        return rollout_key(ask_namespace(ask), query_text(ask_query(ask), 0), suffix, host);
}

/* Answers with the words of a reply, none if the reply is no array. */
static void on_words(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;
        struct texts *words = &ask->answer.words;

        if (ask_failed(ask, reply) || !reply)
                return;
        size_t n = reply->type == REDIS_REPLY_ARRAY ? MIN(reply->elements, (size_t)ANSWER_WORDS_MAX) : 0;
        words->list = calloc(n + 1, sizeof(*words->list));
        if (!words->list) {
                ask_fail_errno(ask, -ENOMEM);
                return;
        }
        for (; words->n < n; words->n++) {
                struct field *word = &words->list[words->n];

                *word = reply_element(reply, words->n);
                word->len = MIN(word->len, (size_t)ANSWER_WORD_MAX);
        }
        ask_done(ask);
}

void ask_glance(struct ask *ask)
{
        struct redis_command command;

        if (command_make(&command, key_of(ask, "", ""), WORDS("HMGET", "number", "id", "state")) < 0)
                ask_fail_errno(ask, -ENOMEM);
        else
                ask_command(ask, on_words, &command, true);
}

/* Runs the script. what: "EVAL" with the text of the script, or "EVALSHA" with its SHA-1. */
static void send_script(struct ask *ask, redis_reply_fn callback, const char *what, const char *script)
{
        const struct query *query = ask_query(ask);
        const char *argv[3 + ROLLOUT_SCRIPT_KEYS + ARGUMENTS_MAX] = {what, script, "5"};
        char *keys[ROLLOUT_SCRIPT_KEYS];
        size_t argc = 3;
        int r = 0;

        static_assert(ROLLOUT_SCRIPT_KEYS == 5, "the number of keys");
        for (size_t i = 0; i < ROLLOUT_SCRIPT_KEYS; i++) {
                argv[argc++] = keys[i] = key_of(ask, rollout_script_suffixes[i], "");
                if (!keys[i])
                        r = -ENOMEM;
        }
        for (size_t i = 1; i < query->n_texts && argc < ELEMENTSOF(argv); i++)
                argv[argc++] = query_text(query, i);
        if (r == 0)
                r = redis_command_forbiddable(ask_redis(ask), callback, ask, (int)argc, argv, NULL);
        for (size_t i = 0; i < ROLLOUT_SCRIPT_KEYS; i++)
                free(keys[i]);
        if (r < 0)
                ask_fail_errno(ask, r);
}

/* After a restart, failover or flush, Redis does not know the name: nothing was executed, so the text is
 * sent. */
static void on_script(struct redis *redis, const redisReply *reply, void *userdata)
{
        if (reply && reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOSCRIPT", 8) == 0)
                send_script(userdata, on_words, "EVAL", rollout_script);
        else
                on_words(redis, reply, userdata);
}

/* Sends the script by its SHA-1: with a thousand hosts the script's text would be a considerable load. */
void ask_rollout(struct ask *ask)
{
        char name[HMAC_SCRIPT_SHA1_MAX];

        hmac_script_sha1(rollout_script, name);
        send_script(ask, on_script, "EVALSHA", name);
}
