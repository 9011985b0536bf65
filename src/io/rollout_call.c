/* SPDX-License-Identifier: MIT */
/* Calls of the script by which hosts agree whose turn it is; see the header. */
#include "io/rollout_call.h"
#include "wire/withhold.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#define PREFIX    "sqmgr:rollout:"
#define WORDS_MAX 10 /* behind the keys */
#define ERROR_MAX 1024

struct call {
        rollout_call_fn callback;
        void *userdata;
};

/* What can be put right is said. */
static void explain(const char *said, char *error)
{
        static const struct {
                const char *begins, *remedy;
        } remedies[] = {
                {"NOPERM", "a rollout over many hosts needs an ACL such as `~" PREFIX
                           "* +@read +@write +eval +time` for this user"},
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

static void on_reply(struct redis *redis _unused_, const struct redisReply *reply, void *userdata)
{
        _cleanup_free_ struct call *call = userdata;
        _cleanup_free_ struct rollout_word *words = NULL;
        struct rollout_answer answer = {.error = "the connection was lost"};
        struct rollout_reply decoded;
        char error[ERROR_MAX];

        if (reply && reply->type == REDIS_REPLY_ERROR) {
                explain(reply->str, error);
                answer.error = error;
        } else if (reply) {
                answer.error = "Redis answers what is not understood";
                if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0)
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
        _cleanup_free_ struct call *call = userdata;
        struct rollout_answer answer = {.error = "the connection was lost"};
        struct rollout_reply glance;
        char error[ERROR_MAX];

        if (reply && reply->type == REDIS_REPLY_ERROR) {
                explain(reply->str, error);
                answer.error = error;
        } else if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 3) {
                const struct rollout_word words[] = {word_of(reply->element[0]), word_of(reply->element[1]),
                                                     word_of(reply->element[2])};

                rollout_reply_glance(&words[0], &words[1], &words[2], &glance);
                answer = (struct rollout_answer){.reply = &glance};
        } else if (reply) {
                answer.error = "Redis answers what is not understood";
        }
        call->callback(&answer, call->userdata);
}

/* NULL: memory is short. */
static char *key_of(const struct rollout_caller *caller, const char *suffix)
{
        char *key;

        return asprintf(&key, "%s%s" PREFIX "%s%s", caller->namespace ?: "", caller->namespace ? ":" : "",
                        caller->group, suffix) < 0
                       ? NULL
                       : key;
}

int rollout_call_glance(const struct rollout_caller *caller, rollout_call_fn callback, void *userdata)
{
        _cleanup_free_ char *key = key_of(caller, rollout_script_suffixes[0]);
        struct call *call = malloc(sizeof(*call));
        int r = -ENOMEM;

        if (key && call) {
                *call = (struct call){callback, userdata};
                r = redis_command_forbiddable(caller->redis, on_glance, call, 5,
                                              (const char *const[]){"HMGET", key, "number", "id", "state"},
                                              NULL);
        }
        if (r < 0)
                free(call);
        return r;
}

static int send_call(const struct rollout_caller *caller, const struct call *what, const char *const *words,
                     size_t n_words)
{
        const char *argv[3 + ROLLOUT_SCRIPT_KEYS + WORDS_MAX] = {"EVAL", rollout_script, "5"};
        char *keys[ROLLOUT_SCRIPT_KEYS] = {NULL};
        struct call *call = malloc(sizeof(*call));
        int argc = 3, r = call ? 0 : -ENOMEM;

        static_assert(ROLLOUT_SCRIPT_KEYS == 5, "as many as the script is told of");
        assert(n_words <= WORDS_MAX);
        for (size_t i = 0; i < ROLLOUT_SCRIPT_KEYS && r == 0; i++) {
                keys[i] = key_of(caller, rollout_script_suffixes[i]);
                if (!keys[i])
                        r = -ENOMEM;
                argv[argc++] = keys[i];
        }
        for (size_t i = 0; i < n_words; i++)
                argv[argc++] = words[i];
        if (r == 0) {
                *call = *what;
                r = redis_command_forbiddable(caller->redis, on_reply, call, argc, argv, NULL);
        }
        if (r < 0)
                free(call);
        for (size_t i = 0; i < ROLLOUT_SCRIPT_KEYS; i++)
                free(keys[i]);
        return r;
}

/* words: those behind the caller's own, up to the first that is NULL. */
static int ask(const struct rollout_caller *caller, const char *operation, const char *const words[],
               const struct call *call)
{
        const char *all[WORDS_MAX];
        char number[24];
        size_t n = 0;

        snprintf(number, sizeof(number), "%llu", (unsigned long long)caller->number);
        all[n++] = operation;
        all[n++] = caller->host;
        all[n++] = caller->instance;
        all[n++] = number;
        all[n++] = caller->id;
        while (words && *words)
                all[n++] = *words++;
        return send_call(caller, call, all, n);
}

int rollout_call_tick(const struct rollout_caller *caller, const char *word, const char *text,
                      rollout_call_fn callback, void *userdata)
{
        const char *const words[] = {word, text ?: "", NULL};

        return ask(caller, "tick", words, &(struct call){callback, userdata});
}

int rollout_call_begin(const struct rollout_caller *caller, const struct rollout_reply *epoch,
                       rollout_call_fn callback, void *userdata)
{
        char canary[16], failures[16];
        const char *const words[] = {epoch->asked, canary, failures, epoch->release, epoch->mac, NULL};

        snprintf(canary, sizeof(canary), "%u", epoch->canary_seconds);
        snprintf(failures, sizeof(failures), "%u", epoch->failures);
        return ask(caller, "begin", words, &(struct call){callback, userdata});
}

int rollout_call_abort(const struct rollout_caller *caller, const char *mac, rollout_call_fn callback,
                       void *userdata)
{
        const char *const words[] = {mac, NULL};

        return ask(caller, "abort", words, &(struct call){callback, userdata});
}

int rollout_call_forget(const struct rollout_caller *caller, const char *host, rollout_call_fn callback,
                        void *userdata)
{
        const char *const words[] = {host, NULL};

        return ask(caller, "forget", words, &(struct call){callback, userdata});
}

int rollout_call_show(const struct rollout_caller *caller, rollout_call_fn callback, void *userdata)
{
        return ask(caller, "show", NULL, &(struct call){callback, userdata});
}
