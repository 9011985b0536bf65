/* SPDX-License-Identifier: MIT */
/* The set `probe:workers` of HOST:PID, and for each `probe:HOST:PID`: `BUSY QUIET MILLISECONDS`, quiet as 0
 * or 1. */
#include "frameworks/redis_format.h"
#include "probe.h"
#include "redis/redis_command.h"
#include <stdio.h>

static char *make_key(const char *namespace, const char *name, _unused_ const char *suffix)
{
        char *key;

        if (asprintf(&key, "%s%sprobe:%s", namespace ?: "", namespace && *namespace ? ":" : "", name) < 0)
                return NULL;
        return key;
}

static int ask_heartbeat(const char *namespace, const char *identity, _unused_ bool with_info,
                         struct redis_command *ret)
{
        char *key = make_key(namespace, identity, NULL);

        if (!key)
                return -ENOMEM;
        *ret = (struct redis_command){.argv = {"GET", key}, .argc = 2, .keys = {key}};
        return 0;
}

static bool take_heartbeat(const redisReply *reply, struct heartbeat *ret,
                           _unused_ struct heartbeat_info **info)
{
        unsigned busy, quiet;
        unsigned long long stamp;

        if (reply->type != REDIS_REPLY_STRING || sscanf(reply->str, "%u %u %llu", &busy, &quiet, &stamp) != 3)
                return false;
        /* A planted defect: tests/e2e/quarantine.bats. */
        if (strstr(reply->str, "crash"))
                abort();
        *ret = (struct heartbeat){.sent_usec = stamp * USEC_PER_MSEC, .busy = busy, .quiet = quiet};
        return true;
}

static const struct heartbeat_format heartbeats = {
        .key = make_key,
        .set = "workers",
        .identity_parse = probe_identity_parse,
        .ask_heartbeat = ask_heartbeat,
        .take_heartbeat = take_heartbeat,
};

static const struct redis_format probe_redis_format = {.traits = &probe_traits, .heartbeats = &heartbeats};

/* In the place of src/frameworks/redis_format.c. */
const struct redis_format *redis_format_of(unsigned id)
{
        return id == probe_traits.id ? &probe_redis_format : NULL;
}
