/* SPDX-License-Identifier: MIT */
/* The set `probe:workers` of HOST:PID, and for each `probe:HOST:PID`: `BUSY QUIET MILLISECONDS`, quiet as 0
 * or 1. */
#include "probe.h"
#include "redis/redis_command.h"
#include "settings/traits.h"
#include <stdio.h>
#include <string.h>

const struct traits probe_traits = {
        .name = "probe",
        .title = "Probe",
        .id = 1000,
        .quiet_is_stop = true,
        .memory_of_tree = true,
        .reports_busy = true,
        .stale_usec = 10 * USEC_PER_SEC,
};

static char *make_key(const char *namespace, const char *name, _unused_ const char *suffix)
{
        char *key;

        if (asprintf(&key, "%s%sprobe:%s", namespace ?: "", namespace && *namespace ? ":" : "", name) < 0)
                return NULL;
        return key;
}

static bool identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid)
{
        const char *colon = memrchr(text, ':', len);
        int pid;

        if (!colon || sscanf(colon + 1, "%d", &pid) != 1 || pid <= 0)
                return false;
        *ret_host_len = (size_t)(colon - text);
        *ret_pid = pid;
        return true;
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
        *ret = (struct heartbeat){.sent_usec = stamp * USEC_PER_MSEC, .busy = busy, .quiet = quiet};
        return true;
}

const struct heartbeat_format probe_heartbeats = {
        .key = make_key,
        .set = "workers",
        .identity_parse = identity_parse,
        .ask_heartbeat = ask_heartbeat,
        .take_heartbeat = take_heartbeat,
};
