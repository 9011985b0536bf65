/* SPDX-License-Identifier: MIT */
/* Names of the Redis keys that the hosts of a rollout_group share. */
#include "model/group_key.h"
#include <stdbool.h>
#include <stdio.h>

char *rollout_key(const char *namespace, const char *group, const char *suffix, const char *host)
{
        bool bare = !namespace || namespace[0] == '\0';
        char *key;

        return asprintf(&key, "%s%s" ROLLOUT_PREFIX "%s%s%s", bare ? "" : namespace, bare ? "" : ":", group,
                        suffix, host) < 0
                       ? NULL
                       : key;
}
