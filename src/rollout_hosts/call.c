/* SPDX-License-Identifier: MIT */
/* Calls of the script that assigns leases to hosts; see the header. */
#include "rollout_hosts/call.h"
#include "base/macro.h"
#include "redis/redis.h"
#include "rollout_hosts/hmac.h"
#include "rollout_hosts/reply_rules.h"
#include "rollout_hosts/script_rules.h"
#include "wire/withhold.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#define WORDS_MAX (ROLLOUT_SCRIPT_KEYS + 14)
#define ERROR_MAX 1024

struct call {
        rollout_call_fn callback;
        void *userdata;
        char *words[WORDS_MAX]; /* owned: the keys, then the arguments */
        size_t n_words;
        bool whole; /* the script's text was sent, not its SHA-1 */
};

static void call_free(struct call *call)
{
        for (size_t i = 0; call && i < call->n_words; i++)
                free(call->words[i]);
        free(call);
}

DEFINE_CLEANUP(struct call *, call_free)
#define _cleanup_call_ __attribute__((__cleanup__(call_free_pointer)))

/* Writes the error with a remedy if one is known. */
static void explain(const char *said, char *error)
{
        static const struct {
                const char *begins, *remedy;
        } remedies[] = {
                {"NOPERM", "a rollout over many hosts needs an ACL such as `~" ROLLOUT_PREFIX
                           "* +@read +@write +eval +evalsha +time` for this user"},
                {"CROSSSLOT", "a rollout over many hosts does not work on Redis Cluster"},
                {"MOVED", "a rollout over many hosts does not work on Redis Cluster"},
                {"READONLY", "this server is a replica: name the master, or the Sentinels"},
                {"ERR unknown command", "this server runs no scripts, which a rollout over many hosts needs"},
        };

        for (size_t i = 0; i < ELEMENTSOF(remedies); i++)
                if (strncmp(said, remedies[i].begins, strlen(remedies[i].begins)) == 0) {
                        snprintf(error, ERROR_MAX, "%s: " WITHHOLD_ANSWER "%.300s'", remedies[i].remedy,
                                 said);
                        return;
                }
        snprintf(error, ERROR_MAX, "Redis refuses: " WITHHOLD_ANSWER "%.300s'", said);
}

/* Returns why there is no usable reply, using error as buffer for an error of Redis; NULL: the reply is
 * usable. */
static const char *refusal(const struct redisReply *reply, char *error)
{
        if (!reply)
                return "the connection was lost";
        if (reply->type != REDIS_REPLY_ERROR)
                return NULL;
        explain(reply->str, error);
        return error;
}

static size_t take_words(const struct redisReply *reply, struct rollout_word *words)
{
        for (size_t i = 0; i < reply->elements; i++) {
                const struct redisReply *word = reply->element[i];

                if (word->type != REDIS_REPLY_STRING)
                        return 0;
                words[i] = (struct rollout_word){.text = word->str, .len = word->len};
        }
        return reply->elements;
}

static void on_reply(struct redis *redis, const struct redisReply *reply, void *userdata);

/* Sends the script by its SHA-1: with a thousand hosts the script's text would be a considerable load.
 * Returns 0, or an error of redis_command(): the call still belongs to the caller then. */
static int send_call(struct redis *redis, struct call *call)
{
        const char *argv[3 + WORDS_MAX] = {"EVAL", rollout_script, "5"};
        char name[HMAC_SCRIPT_SHA1_MAX];

        static_assert(ROLLOUT_SCRIPT_KEYS == 5, "as many as the script is told of");
        hmac_script_sha1(rollout_script, name);
        if (!call->whole) {
                argv[0] = "EVALSHA";
                argv[1] = name;
        }
        for (size_t i = 0; i < call->n_words; i++)
                argv[3 + i] = call->words[i];
        return redis_command_forbiddable(redis, on_reply, call, 3 + (int)call->n_words, argv, NULL);
}

/* After a restart, failover or flush, Redis does not know the SHA-1: nothing was executed, so the text is
 * sent. */
static bool is_sent_whole(struct redis *redis, const struct redisReply *reply, struct call *call)
{
        if (!reply || call->whole || reply->type != REDIS_REPLY_ERROR ||
            strncmp(reply->str, "NOSCRIPT", 8) != 0)
                return false;
        call->whole = true;
        return send_call(redis, call) == 0;
}

static void on_reply(struct redis *redis, const struct redisReply *reply, void *userdata)
{
        if (is_sent_whole(redis, reply, userdata))
                return;
        _cleanup_call_ struct call *call = userdata;
        _cleanup_free_ struct rollout_word *words = NULL;
        struct rollout_reply decoded;
        char error[ERROR_MAX];
        struct rollout_answer answer = {.error = refusal(reply, error)};

        if (!answer.error) {
                answer.error = "Redis answers what is not understood";
                if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
                    reply->elements <= ROLLOUT_REPLY_WORDS_MAX)
                        words = reallocarray(NULL, reply->elements, sizeof(*words));
                if (words)
                        answer.n = take_words(reply, words);
                answer.words = words;
                if (answer.n > 0 && rollout_reply_decode(words, answer.n, &decoded) == 0) {
                        answer.reply = &decoded;
                        answer.error = NULL;
                }
        }
        call->callback(&answer, call->userdata);
}

static struct rollout_word word_of(const struct redisReply *reply)
{
        return reply->type == REDIS_REPLY_STRING ? (struct rollout_word){reply->str, reply->len}
                                                 : (struct rollout_word){"", 0};
}

static void on_glance(struct redis *redis _unused_, const struct redisReply *reply, void *userdata)
{
        _cleanup_call_ struct call *call = userdata;
        struct rollout_reply glance;
        char error[ERROR_MAX];
        struct rollout_answer answer = {.error = refusal(reply, error)};

        if (!answer.error && reply->type == REDIS_REPLY_ARRAY && reply->elements == 3) {
                const struct rollout_word words[] = {word_of(reply->element[0]), word_of(reply->element[1]),
                                                     word_of(reply->element[2])};

                rollout_reply_glance(&words[0], &words[1], &words[2], &glance);
                answer = (struct rollout_answer){.reply = &glance};
        } else if (!answer.error) {
                answer.error = "Redis answers what is not understood";
        }
        call->callback(&answer, call->userdata);
}

/* Returns NULL if memory is short. */
static char *key_of(const struct rollout_caller *caller, size_t i)
{
        return rollout_key(caller->namespace, caller->group, rollout_script_suffixes[i], "");
}

int rollout_call_glance(const struct rollout_caller *caller, rollout_call_fn callback, void *userdata)
{
        _cleanup_free_ char *key = key_of(caller, 0);
        struct call *call = calloc(1, sizeof(*call));
        int r = -ENOMEM;

        if (key && call) {
                *call = (struct call){.callback = callback, .userdata = userdata};
                r = redis_command_forbiddable(caller->redis, on_glance, call, 5,
                                              (const char *const[]){"HMGET", key, "number", "id", "state"},
                                              NULL);
        }
        if (r < 0)
                call_free(call);
        return r;
}

/* Takes ownership of word. word is NULL if memory was short. */
static int add_word(struct call *call, char *word)
{
        assert(call->n_words < WORDS_MAX);
        if (!word)
                return -ENOMEM;
        call->words[call->n_words++] = word;
        return 0;
}

int rollout_call(const struct rollout_caller *caller, const char *const words[], rollout_call_fn callback,
                 void *userdata)
{
        struct call *call = calloc(1, sizeof(*call));
        char number[24];
        const char *const own[] = {words[0], caller->host, caller->instance, number, caller->id};
        int r = 0;

        if (!call)
                return -ENOMEM;
        snprintf(number, sizeof(number), "%llu", (unsigned long long)caller->number);
        call->callback = callback;
        call->userdata = userdata;
        for (size_t i = 0; i < ROLLOUT_SCRIPT_KEYS && r == 0; i++)
                r = add_word(call, key_of(caller, i));
        for (size_t i = 0; i < ELEMENTSOF(own) && r == 0; i++)
                r = add_word(call, strdup(own[i]));
        for (words++; *words && r == 0; words++)
                r = add_word(call, strdup(*words));
        if (r == 0)
                r = send_call(caller->redis, call);
        if (r < 0)
                call_free(call);
        return r;
}
