/* SPDX-License-Identifier: MIT */
/* How the records of RQ's workers stand in Redis: a set of their keys, which tell neither host nor pid, and a
 * hash at each, which does. */
#include "frameworks/rq/rq_beats.h"
#include "frameworks/rq/rq.h"
#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

/* What the list has of each worker: its key, host and pid. */
enum { LIST_KEY, LIST_HOST, LIST_PID, _LIST_MAX };

static char *set_key(const char *namespace _unused_)
{
        return strdup(RQ_WORKERS);
}

static void ask_list(const char *set_key, struct beats_command *ret)
{
        *ret = (struct beats_command){
                .argv = {"SORT", set_key, "BY", "nosort", "GET", "#", "GET", "*->hostname", "GET", "*->pid"},
                .argc = 10,
        };
}

static struct field reply_field(const redisReply *reply, size_t i)
{
        if (i >= reply->elements || reply->element[i]->type != REDIS_REPLY_STRING)
                return (struct field){0};
        return (struct field){.text = reply->element[i]->str, .len = reply->element[i]->len};
}

static int found_one(const struct rq_worker *worker,
                     int (*found)(const struct match_found *found, void *userdata), void *userdata)
{
        struct match_found one;
        int error;
        _cleanup_free_ char *identity = rq_identity_make(worker, &error);

        /* A record that has expired, or is none. */
        if (!identity)
                return error == -ENOMEM ? error : 0;
        one = (struct match_found){.identity = identity, .len = strlen(identity)};
        return rq_identity_parse(identity, one.len, &one.host_len, &one.pid) ? found(&one, userdata) : 0;
}

static int take_list(const redisReply *reply, int (*found)(const struct match_found *found, void *userdata),
                     void *userdata)
{
        int r = 0;

        if (reply->type != REDIS_REPLY_ARRAY || reply->elements % _LIST_MAX != 0)
                return -EBADMSG;
        for (size_t i = 0; i < reply->elements && r >= 0; i += _LIST_MAX) {
                const struct rq_worker worker = {
                        .host = reply_field(reply, i + LIST_HOST),
                        .pid = reply_field(reply, i + LIST_PID),
                        .key = reply_field(reply, i + LIST_KEY),
                };
                r = found_one(&worker, found, userdata);
        }
        return r;
}

static int ask_beat(const char *namespace _unused_, const char *identity, bool with_info _unused_,
                    struct beats_command *ret)
{
        const char *key = rq_identity_key(identity);
        /* One that is none, of a state file say, is asked for and not found. */
        char *copy = strdup(key ?: identity);

        if (!copy)
                return -ENOMEM;
        *ret = (struct beats_command){
                .argv = {"HMGET", copy, "state", "last_heartbeat", "shutdown_requested_date", "death"},
                .argc = 6,
                .keys = {copy},
        };
        return 0;
}

static bool take_beat(const redisReply *reply, struct heartbeat *ret, struct beat_info **info _unused_)
{
        if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 4)
                return false;
        struct field state = reply_field(reply, 0), beat = reply_field(reply, 1);
        struct field shutdown = reply_field(reply, 2), death = reply_field(reply, 3);

        return rq_beat_decode(&state, &beat, &shutdown, &death, ret);
}

const struct beats_format rq_beats = {
        .set_key = set_key,
        .member_nsec = 1700,
        .ask_list = ask_list,
        .take_list = take_list,
        .identity_parse = rq_identity_parse,
        .ask_beat = ask_beat,
        .take_beat = take_beat,
};
