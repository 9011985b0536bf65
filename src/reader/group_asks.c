/* SPDX-License-Identifier: MIT */
/* Runs the script of rollouts for sqmgr, and exchanges the shares of the hosts of a group. */
#include "model/group_key.h"
#include "reader/redis_ask.h"
#include "rollout_hosts/hmac.h"
#include "rollout_hosts/script_rules.h"
#include <stdio.h>
#include <string.h>

#define ARGUMENTS_MAX 16
#define SEEN          ":seen"
#define THREADS       ":threads:"

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

/* MGET returns nil for a missing key and for a key of a wrong type. */
static void on_shares(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;
        struct texts *shares = &ask->answer.shares;

        if (ask_failed(ask, reply))
                return;
        for (size_t i = 0; i < shares->n / 2; i++) {
                struct field share = reply_element(reply, i);

                if (share.len <= ANSWER_SHARE_MAX)
                        shares->list[2 * i + 1] = share;
        }
        ask_done(ask);
}

/* Copies the names of the hosts, leaving space for their shares. Names that no host has are left out. */
static int take_hosts(const redisReply *reply, struct texts *shares)
{
        size_t n = reply->type == REDIS_REPLY_ARRAY ? MIN(reply->elements, (size_t)ANSWER_HOSTS_MAX) : 0;
        char *at = malloc(n * (ANSWER_HOST_MAX + 1) + 1);

        *shares = (struct texts){.list = calloc(2 * n + 1, sizeof(*shares->list)), .bytes = at};
        if (!at || !shares->list)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const struct field host = reply_element(reply, i);

                if (host.len == 0 || host.len > ANSWER_HOST_MAX || memchr(host.text, '\0', host.len))
                        continue;
                memcpy(at, host.text, host.len + 1);
                shares->list[shares->n] = (struct field){.text = at, .len = host.len};
                shares->n += 2;
                at += host.len + 1;
        }
        return 0;
}

static int send_mget(struct ask *ask)
{
        const struct texts *shares = &ask->answer.shares;
        size_t n = 0;
        int r = 0;

        char **argv = calloc(shares->n / 2 + 1, sizeof(*argv));
        if (!argv)
                return -ENOMEM;
        if (!(argv[n++] = strdup("MGET")))
                r = -ENOMEM;
        for (size_t i = 0; i < shares->n && r == 0; i += 2, n++)
                if (!(argv[n] = key_of(ask, THREADS, shares->list[i].text)))
                        r = -ENOMEM;
        if (r == 0)
                r = redis_command_forbiddable(ask_redis(ask), on_shares, ask, (int)n,
                                              (const char *const *)argv, NULL);
        while (n > 0)
                free(argv[--n]);
        free(argv);
        return r;
}

static void on_hosts(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;
        struct texts *shares = &ask->answer.shares;

        if (ask_failed(ask, reply))
                return;
        int r = take_hosts(reply, shares);
        if (r == 0 && shares->n > 0)
                r = send_mget(ask);
        if (r < 0)
                ask_fail_errno(ask, r);
        else if (shares->n == 0)
                ask_done(ask);
}

static void read_shares(struct ask *ask)
{
        struct redis_command command;
        char last[16];

        snprintf(last, sizeof(last), "%d", ANSWER_HOSTS_MAX - 1);
        if (ask_query(ask)->numbers[1] == 0)
                ask_done(ask);
        else if (command_make(&command, key_of(ask, SEEN, ""), WORDS("ZRANGE", "0", last)) < 0)
                ask_fail_errno(ask, -ENOMEM);
        else
                ask_command(ask, on_hosts, &command, true);
}

static void on_written(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;

        if (!reply) {
                (void)ask_failed(ask, reply);
                return;
        }
        if (reply->type == REDIS_REPLY_ERROR)
                ask_quote_refusal(&ask->answer.error, reply);
        read_shares(ask);
}

void ask_share(struct ask *ask)
{
        const struct query *query = ask_query(ask);
        char expiry[24];

        if (query->n_texts < 3) {
                read_shares(ask);
                return;
        }
        _cleanup_free_ char *key = key_of(ask, THREADS, query_text(query, 1));
        snprintf(expiry, sizeof(expiry), "%llu", (unsigned long long)query->numbers[0]);
        const char *argv[] = {"SET", key, query_text(query, 2), "EX", expiry};
        const size_t argvlen[] = {3, key ? strlen(key) : 0, query->texts[2].len, 2, strlen(expiry)};
        int r = key ? redis_command_forbiddable(ask_redis(ask), on_written, ask, ELEMENTSOF(argv), argv,
                                                argvlen)
                    : -ENOMEM;
        if (r < 0)
                ask_fail_errno(ask, r);
}
