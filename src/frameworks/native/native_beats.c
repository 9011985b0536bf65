/* SPDX-License-Identifier: MIT */
/* How the heartbeats of sqmgr-heartbeat(7) stand in Redis: a set of `HOST:PID`, and a hash for each. */
#include "frameworks/native/native_beats.h"
#include "frameworks/native/native.h"
#include <hiredis/hiredis.h>

static char *set_key(const char *namespace)
{
        return decode_key(namespace, NATIVE_WORKERS, NULL);
}

static int ask_beat(const char *namespace, const char *identity, _unused_ bool with_info,
                    struct beats_command *ret)
{
        char *key = decode_key(namespace, NATIVE_WORKER, identity);

        if (!key)
                return -ENOMEM;
        *ret = (struct beats_command){.argv = {"HMGET", key}, .argc = 2, .keys = {key}};
        static_assert(2 + _NATIVE_FIELD_MAX <= ELEMENTSOF(ret->argv), "a word for each");
        for (size_t i = 0; i < _NATIVE_FIELD_MAX; i++)
                ret->argv[ret->argc++] = native_field_names[i];
        return 0;
}

static bool take_beat(const redisReply *reply, struct heartbeat *ret, _unused_ struct beat_info **info)
{
        struct field fields[_NATIVE_FIELD_MAX] = {0};

        if (reply->type != REDIS_REPLY_ARRAY)
                return false;
        for (size_t i = 0; i < MIN(reply->elements, ELEMENTSOF(fields)); i++)
                if (reply->element[i]->type == REDIS_REPLY_STRING)
                        fields[i] = (struct field){reply->element[i]->str, reply->element[i]->len};
        return native_decode(fields, ret);
}

const struct beats_format native_beats = {
        .set_key = set_key,
        .member_nsec = 500,
        .identity_pattern = decode_host_pattern,
        .identity_parse = native_identity_parse,
        .ask_beat = ask_beat,
        .take_beat = take_beat,
};
