/* SPDX-License-Identifier: MIT */
/* Heartbeats of sqmgr-heartbeat(7) in Redis: a set of `HOST:PID` and a hash for each. */
#include "frameworks/native/native.h"
#include "frameworks/redis_format.h"
#include "redis/redis_command.h"

static int ask_heartbeat(const char *namespace, const char *identity, _unused_ bool with_info,
                         struct redis_command *ret)
{
        static_assert(2 + _NATIVE_REDIS_MAX <= ELEMENTSOF(ret->argv), "a word for each");
        if (command_make(ret, decode_key(namespace, NATIVE_WORKER, identity), WORDS("HMGET")) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < _NATIVE_REDIS_MAX; i++)
                ret->argv[ret->argc++] = native_field_names[i];
        return 0;
}

static bool take_heartbeat(const redisReply *reply, struct heartbeat *ret,
                           _unused_ struct heartbeat_info **info)
{
        struct field fields[_NATIVE_FIELD_MAX] = {0};

        reply_fields(reply, fields, _NATIVE_REDIS_MAX);
        return native_decode(fields, ret);
}

static const struct heartbeat_format heartbeats = {
        .key = decode_key,
        .set = NATIVE_WORKERS,
        .identity_parse = native_identity_parse,
        .ask_heartbeat = ask_heartbeat,
        .take_heartbeat = take_heartbeat,
};

const struct redis_format native_redis_format = {
        .traits = &native_traits,
        .heartbeats = &heartbeats,
};
