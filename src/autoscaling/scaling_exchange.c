/* SPDX-License-Identifier: MIT */
/* Tells the other hosts of a group what this one takes of the need of their queues; see the header. */
#include "autoscaling/scaling_exchange.h"
#include "base/printable.h"
#include "io/redis_batch.h"
#include "io/clock.h"
#include "io/redis.h"
#include "model/group_key.h"
#include "wire/withhold.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEN    ":seen"
#define THREADS ":threads:"
/* From one reading to the next, for each of the hosts: all of them do it. */
#define MEMBER_USEC (100 * USEC_PER_MSEC)
/* After Redis was away each has yet to tell it anew, and to say first that it is there. */
#define KEEP_USEC (90 * USEC_PER_SEC)

enum { TAG_SHARE, TAG_MEMBERS, TAG_SHARES };

static void keys_clear(struct peering *peering)
{
        for (size_t i = 0; i < peering->n_keys; i++)
                free(peering->keys[i]);
        free(TAKE_PTR(peering->keys));
        peering->n_keys = 0;
}

struct peering *peering_free(struct peering *peering)
{
        if (!peering)
                return NULL;
        redis_batch_free(peering->redis_batch);
        keys_clear(peering);
        peers_clear(&peering->peers);
        free(peering->namespace);
        free(peering->group);
        free(peering);
        return NULL;
}

static bool is_host(const struct peering *peering, const redisReply *name)
{
        return name->type == REDIS_REPLY_STRING && name->len > 0 && name->len < sizeof(peering->host) &&
               !memchr(name->str, '\0', name->len) && strcmp(name->str, peering->host) != 0;
}

static int take_names(struct peering *peering, const redisReply *reply)
{
        size_t most = MIN(reply->elements, (size_t)ROLLOUT_HOSTS_MAX);

        keys_clear(peering);
        peering->keys = calloc(most + 1, sizeof(*peering->keys));
        if (!peering->keys)
                return -ENOMEM;
        for (size_t i = 0; i < most; i++) {
                if (!is_host(peering, reply->element[i]))
                        continue;
                char *key = rollout_key(peering->namespace, peering->group, THREADS, reply->element[i]->str);

                if (!key)
                        return -ENOMEM;
                peering->keys[peering->n_keys++] = key;
        }
        return 0;
}

static void ask_shares(struct peering *peering)
{
        const char **argv = calloc(peering->n_keys + 1, sizeof(*argv));

        if (!argv)
                return;
        argv[0] = "MGET";
        memcpy(argv + 1, peering->keys, peering->n_keys * sizeof(*argv));
        (void)redis_batch_add(peering->redis_batch, peering->redis, TAG_SHARES, (int)peering->n_keys + 1, argv, NULL);
        free(argv);
}

static void replace(struct peering *peering, struct peers *peers, usec_t now)
{
        peers_sort(peers);
        if (now < peering->keep_until)
                (void)peers_keep(peers, &peering->peers, usec_sub(now, KEEP_USEC), ROLLOUT_HOSTS_MAX);
        peers_clear(&peering->peers);
        peering->peers = *peers;
        peering->known = true;
}

static void take_members(struct peering *peering, const redisReply *reply, usec_t now)
{
        struct peers none = {0};

        if (reply->type != REDIS_REPLY_ARRAY || take_names(peering, reply) < 0)
                return;
        peering->next_at = now + peering->n_keys * MEMBER_USEC;
        if (peering->n_keys == 0)
                replace(peering, &none, now);
        else
                ask_shares(peering);
}

/* What is missing, or of a wrong type, is told as nothing. */
static void take_shares(struct peering *peering, const redisReply *reply, usec_t now)
{
        /* Which the keys begin with, before the names of the hosts. */
        _cleanup_free_ char *prefix = rollout_key(peering->namespace, peering->group, THREADS, "");
        struct peers peers = {0};

        if (!prefix || reply->type != REDIS_REPLY_ARRAY || reply->elements != peering->n_keys)
                return;
        for (size_t i = 0; i < reply->elements; i++) {
                const redisReply *share = reply->element[i];

                if (share->type == REDIS_REPLY_STRING &&
                    peers_add(&peers, peering->keys[i] + strlen(prefix), share->str, share->len, now) < 0) {
                        peers_clear(&peers);
                        return;
                }
        }
        replace(peering, &peers, now);
}

static void on_reply(const redisReply *reply, size_t tag, void *userdata)
{
        struct peering *peering = userdata;
        struct peers none = {0};
        usec_t now = clock_now(CLOCK_MONOTONIC);

        if (!reply)
                return;
        if (reply->type == REDIS_REPLY_ERROR) {
                snprintf(peering->error, sizeof(peering->error), WITHHOLD_ANSWER "%.200s'", reply->str);
                printable_replace(peering->error, strlen(peering->error), false);
                peering->refused = true;
                if (tag != TAG_SHARE)
                        replace(peering, &none, now);
        } else if (tag == TAG_MEMBERS) {
                take_members(peering, reply, now);
        } else if (tag == TAG_SHARES) {
                take_shares(peering, reply, now);
        }
}

static void on_done(void *userdata)
{
        struct peering *peering = userdata;

        keys_clear(peering);
        if (peering->reads && !peering->refused)
                peering->error[0] = '\0';
}

int peering_new(struct redis *redis, const char *namespace, const char *group, struct peering **ret)
{
        static const struct redis_batch_ops ops = {.reply = on_reply, .done = on_done};
        struct peering *peering = calloc(1, sizeof(*peering));

        if (!peering)
                return -ENOMEM;
        peering->redis = redis;
        peering->namespace = strdup(namespace ?: "");
        peering->group = strdup(group);
        if (!peering->namespace || !peering->group || redis_batch_new(&ops, peering, &peering->redis_batch) < 0) {
                peering_free(peering);
                return -ENOMEM;
        }
        *ret = peering;
        return 0;
}

static void write_share(struct peering *peering, const struct peer_share *share, unsigned seconds)
{
        _cleanup_free_ char *key = rollout_key(peering->namespace, peering->group, THREADS, peering->host);
        char text[PEER_TEXT_MAX], expiry[16];
        size_t length = peer_encode(share, text);

        if (!key)
                return;
        snprintf(expiry, sizeof(expiry), "%u", seconds);
        const char *argv[] = {"SET", key, text, "EX", expiry};
        const size_t argvlen[] = {3, strlen(key), length, 2, strlen(expiry)};
        (void)redis_batch_add(peering->redis_batch, peering->redis, TAG_SHARE, ELEMENTSOF(argv), argv, argvlen);
}

static void ask_members(struct peering *peering)
{
        _cleanup_free_ char *key = rollout_key(peering->namespace, peering->group, SEEN, "");
        char last[16];

        snprintf(last, sizeof(last), "%d", ROLLOUT_HOSTS_MAX - 1);
        const char *argv[] = {"ZRANGE", key, "0", last};
        if (key)
                (void)redis_batch_add(peering->redis_batch, peering->redis, TAG_MEMBERS, ELEMENTSOF(argv), argv, NULL);
}

void peering_look(struct peering *peering, const char *host, const struct peer_share *share, unsigned seconds,
                  usec_t now)
{
        uint64_t connection = redis_connection_count(peering->redis);

        if (redis_state(peering->redis) != REDIS_STATE_CONNECTED || redis_batch_pending(peering->redis_batch) > 0)
                return;
        if (connection != peering->connection)
                peering->next_at = now;
        if (connection != peering->connection && peering->connection != 0)
                peering->keep_until = now + KEEP_USEC;
        peering->connection = connection;
        peering->reads = now >= peering->next_at;
        peering->refused = false;
        snprintf(peering->host, sizeof(peering->host), "%s", host);
        if (share)
                write_share(peering, share, seconds);
        if (peering->reads)
                ask_members(peering);
}
