/* SPDX-License-Identifier: MIT */
/* Decodes the text of INFO. */
#include "redis/redis_info.h"
#include <stdio.h>
#include <string.h>

/* Returns the value of a line `NAME:VALUE`, up to the end of the text; "" if there is none. */
static const char *value_of(const char *text, const char *name)
{
        size_t length = strlen(name);

        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (strncmp(line, name, length) == 0 && line[length] == ':')
                        return line + length + 1;
        }
        return "";
}

static bool is(const char *text, const char *name, const char *expected)
{
        const char *value = value_of(text, name);
        size_t length = strlen(expected);

        return strcspn(value, "\r\n") == length && strncmp(value, expected, length) == 0;
}

static uint64_t number_of(const char *text, const char *name)
{
        return strtoull(value_of(text, name), NULL, 10);
}

void redis_info_take(const char *text, struct redis_facts *facts)
{
        const char *policy = value_of(text, "maxmemory_policy");

        facts->has_info = true;
        snprintf(facts->policy, sizeof(facts->policy), "%.*s",
                 (int)MIN(strcspn(policy, "\r\n"), sizeof(facts->policy) - 1), policy);
        facts->has_limit = number_of(text, "maxmemory") > 0;
        facts->evicted = number_of(text, "evicted_keys");
        facts->snapshot_failed = is(text, "rdb_last_bgsave_status", "err");
        facts->is_appending = is(text, "aof_enabled", "1");
}
