/* SPDX-License-Identifier: MIT */
/* Exchanges the shares of the need with the other hosts of a group; see the header. */
#include "autoscaling/scaling_exchange.h"
#include "base/printable.h"
#include "io/clock.h"
#include "redis/redis.h"
#include "redis/redis_batch.h"
#include "model/group_key.h"
#include "wire/withhold.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEN    ":seen"
#define THREADS ":threads:"
/* The interval between two readings, per host of the group, because every host reads the shares of all. */
#define MEMBER_USEC (100 * USEC_PER_MSEC)
/* After an outage of Redis, each host must first register again and then write its share. Until then its
 * last share counts. */
#define KEEP_USEC (90 * USEC_PER_SEC)

enum { TAG_SHARE, TAG_MEMBERS, TAG_SHARES };

static void keys_clear(struct scaling_exchange *scaling_exchange)
{
        for (size_t i = 0; i < scaling_exchange->n_keys; i++)
                free(scaling_exchange->keys[i]);
        free(TAKE_PTR(scaling_exchange->keys));
        scaling_exchange->n_keys = 0;
}

struct scaling_exchange *scaling_exchange_free(struct scaling_exchange *scaling_exchange)
{
        if (!scaling_exchange)
                return NULL;
        redis_batch_free(scaling_exchange->redis_batch);
        keys_clear(scaling_exchange);
        peers_clear(&scaling_exchange->peers);
        free(scaling_exchange->namespace);
        free(scaling_exchange->group);
        free(scaling_exchange);
        return NULL;
}

static bool is_host(const struct scaling_exchange *scaling_exchange, const redisReply *name)
{
        return name->type == REDIS_REPLY_STRING && name->len > 0 &&
               name->len < sizeof(scaling_exchange->host) && !memchr(name->str, '\0', name->len) &&
               strcmp(name->str, scaling_exchange->host) != 0;
}

static int take_names(struct scaling_exchange *scaling_exchange, const redisReply *reply)
{
        size_t most = MIN(reply->elements, (size_t)ROLLOUT_HOSTS_MAX);

        keys_clear(scaling_exchange);
        scaling_exchange->keys = calloc(most + 1, sizeof(*scaling_exchange->keys));
        if (!scaling_exchange->keys)
                return -ENOMEM;
        for (size_t i = 0; i < most; i++) {
                if (!is_host(scaling_exchange, reply->element[i]))
                        continue;
                char *key = rollout_key(scaling_exchange->namespace, scaling_exchange->group, THREADS,
                                        reply->element[i]->str);

                if (!key)
                        return -ENOMEM;
                scaling_exchange->keys[scaling_exchange->n_keys++] = key;
        }
        return 0;
}

static void ask_shares(struct scaling_exchange *scaling_exchange)
{
        const char **argv = calloc(scaling_exchange->n_keys + 1, sizeof(*argv));

        if (!argv)
                return;
        argv[0] = "MGET";
        memcpy(argv + 1, scaling_exchange->keys, scaling_exchange->n_keys * sizeof(*argv));
        (void)redis_batch_add(scaling_exchange->redis_batch, scaling_exchange->redis, TAG_SHARES,
                              (int)scaling_exchange->n_keys + 1, argv, NULL);
        free(argv);
}

static void replace(struct scaling_exchange *scaling_exchange, struct peers *peers, usec_t now)
{
        peers_sort(peers);
        if (now < scaling_exchange->keep_until)
                (void)peers_keep(peers, &scaling_exchange->peers, usec_sub(now, KEEP_USEC),
                                 ROLLOUT_HOSTS_MAX);
        peers_clear(&scaling_exchange->peers);
        scaling_exchange->peers = *peers;
        scaling_exchange->known = true;
}

static void take_members(struct scaling_exchange *scaling_exchange, const redisReply *reply, usec_t now)
{
        struct peers none = {0};

        if (reply->type != REDIS_REPLY_ARRAY || take_names(scaling_exchange, reply) < 0)
                return;
        scaling_exchange->next_at = now + scaling_exchange->n_keys * MEMBER_USEC;
        if (scaling_exchange->n_keys == 0)
                replace(scaling_exchange, &none, now);
        else
                ask_shares(scaling_exchange);
}

/* MGET returns nil for a missing key and for a key of a wrong type. */
static void take_shares(struct scaling_exchange *scaling_exchange, const redisReply *reply, usec_t now)
{
        /* The common prefix of all keys, before the host name. */
        _cleanup_free_ char *prefix =
                rollout_key(scaling_exchange->namespace, scaling_exchange->group, THREADS, "");
        struct peers peers = {0};

        if (!prefix || reply->type != REDIS_REPLY_ARRAY || reply->elements != scaling_exchange->n_keys)
                return;
        for (size_t i = 0; i < reply->elements; i++) {
                const redisReply *share = reply->element[i];

                if (share->type == REDIS_REPLY_STRING &&
                    peers_add(&peers, scaling_exchange->keys[i] + strlen(prefix), share->str, share->len,
                              now) < 0) {
                        peers_clear(&peers);
                        return;
                }
        }
        replace(scaling_exchange, &peers, now);
}

static void on_reply(const redisReply *reply, size_t tag, void *userdata)
{
        struct scaling_exchange *scaling_exchange = userdata;
        struct peers none = {0};
        usec_t now = clock_now(CLOCK_MONOTONIC);

        if (!reply)
                return;
        if (reply->type == REDIS_REPLY_ERROR) {
                snprintf(scaling_exchange->error, sizeof(scaling_exchange->error), WITHHOLD_ANSWER "%.200s'",
                         reply->str);
                printable_replace(scaling_exchange->error, strlen(scaling_exchange->error), false);
                scaling_exchange->refused = true;
                if (tag != TAG_SHARE)
                        replace(scaling_exchange, &none, now);
        } else if (tag == TAG_MEMBERS) {
                take_members(scaling_exchange, reply, now);
        } else if (tag == TAG_SHARES) {
                take_shares(scaling_exchange, reply, now);
        }
}

static void on_done(void *userdata)
{
        struct scaling_exchange *scaling_exchange = userdata;

        keys_clear(scaling_exchange);
        if (scaling_exchange->reads && !scaling_exchange->refused)
                scaling_exchange->error[0] = '\0';
}

int scaling_exchange_new(struct redis *redis, const char *namespace, const char *group,
                         struct scaling_exchange **ret)
{
        static const struct redis_batch_ops ops = {.reply = on_reply, .done = on_done};
        struct scaling_exchange *scaling_exchange = calloc(1, sizeof(*scaling_exchange));

        if (!scaling_exchange)
                return -ENOMEM;
        scaling_exchange->redis = redis;
        scaling_exchange->namespace = strdup(namespace ?: "");
        scaling_exchange->group = strdup(group);
        if (!scaling_exchange->namespace || !scaling_exchange->group ||
            redis_batch_new(&ops, scaling_exchange, &scaling_exchange->redis_batch) < 0) {
                scaling_exchange_free(scaling_exchange);
                return -ENOMEM;
        }
        *ret = scaling_exchange;
        return 0;
}

static void write_share(struct scaling_exchange *scaling_exchange, const struct peer_share *share,
                        unsigned seconds)
{
        _cleanup_free_ char *key = rollout_key(scaling_exchange->namespace, scaling_exchange->group, THREADS,
                                               scaling_exchange->host);
        char text[PEER_TEXT_MAX], expiry[16];
        size_t length = peer_encode(share, text);

        if (!key)
                return;
        snprintf(expiry, sizeof(expiry), "%u", seconds);
        const char *argv[] = {"SET", key, text, "EX", expiry};
        const size_t argvlen[] = {3, strlen(key), length, 2, strlen(expiry)};
        (void)redis_batch_add(scaling_exchange->redis_batch, scaling_exchange->redis, TAG_SHARE,
                              ELEMENTSOF(argv), argv, argvlen);
}

static void ask_members(struct scaling_exchange *scaling_exchange)
{
        _cleanup_free_ char *key =
                rollout_key(scaling_exchange->namespace, scaling_exchange->group, SEEN, "");
        char last[16];

        snprintf(last, sizeof(last), "%d", ROLLOUT_HOSTS_MAX - 1);
        const char *argv[] = {"ZRANGE", key, "0", last};
        if (key)
                (void)redis_batch_add(scaling_exchange->redis_batch, scaling_exchange->redis, TAG_MEMBERS,
                                      ELEMENTSOF(argv), argv, NULL);
}

void scaling_exchange_poll(struct scaling_exchange *scaling_exchange, const char *host,
                           const struct peer_share *share, unsigned seconds, usec_t now)
{
        uint64_t connection = redis_connection_count(scaling_exchange->redis);

        if (redis_state(scaling_exchange->redis) != REDIS_STATE_CONNECTED ||
            redis_batch_pending(scaling_exchange->redis_batch) > 0)
                return;
        if (connection != scaling_exchange->connection)
                scaling_exchange->next_at = now;
        if (connection != scaling_exchange->connection && scaling_exchange->connection != 0)
                scaling_exchange->keep_until = now + KEEP_USEC;
        scaling_exchange->connection = connection;
        scaling_exchange->reads = now >= scaling_exchange->next_at;
        scaling_exchange->refused = false;
        snprintf(scaling_exchange->host, sizeof(scaling_exchange->host), "%s", host);
        if (share)
                write_share(scaling_exchange, share, seconds);
        if (scaling_exchange->reads)
                ask_members(scaling_exchange);
}
