/* SPDX-License-Identifier: MIT */
/* How the heartbeats of Resque's workers stand in Redis: a set of identities, one hash with the time of each
 * one's last beat, and a key for each that runs a job. */
#include "frameworks/resque/resque_beats.h"
#include "frameworks/resque/resque.h"
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

static char *set_key(const char *namespace)
{
        return resque_key(namespace, RESQUE_WORKERS, NULL);
}

static int ask_beat(const char *namespace, const char *identity, bool with_info _unused_,
                    struct beats_command *ret)
{
        char *key = resque_key(namespace, RESQUE_HEARTBEATS, NULL), *copy = strdup(identity);

        if (!key || !copy) {
                free(key);
                free(copy);
                return -ENOMEM;
        }
        *ret = (struct beats_command){.argv = {"HGET", key, copy}, .argc = 3, .keys = {key, copy}};
        return 0;
}

static bool take_beat(const redisReply *reply, struct heartbeat *ret, struct beat_info **info _unused_)
{
        const struct field field = {.text = reply->str, .len = reply->len};

        return reply->type == REDIS_REPLY_STRING && resque_beat_decode(&field, ret);
}

static int ask_work_list(const char *namespace, const char *identity, struct beats_command *ret)
{
        char *key = resque_key(namespace, RESQUE_WORKER, identity);

        if (!key)
                return -ENOMEM;
        *ret = (struct beats_command){.argv = {"EXISTS", key}, .argc = 2, .keys = {key}};
        return 0;
}

static void take_work_list(const redisReply *reply, struct heartbeat *beat)
{
        beat->work_list_known = reply->type == REDIS_REPLY_INTEGER;
        beat->work_list_empty = beat->work_list_known && reply->integer == 0;
}

const struct beats_format resque_beats = {
        .set_key = set_key,
        .member_nsec = 500,
        .identity_pattern = decode_host_pattern,
        .identity_parse = resque_identity_parse,
        .ask_beat = ask_beat,
        .take_beat = take_beat,
        .ask_work_list = ask_work_list,
        .take_work_list = take_work_list,
};
