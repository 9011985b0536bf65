/* SPDX-License-Identifier: MIT */
/* Decodes the text of INFO. */
#include "redis/redis_info.h"
#include "base/printable.h"
#include <stdio.h>
#include <string.h>

/* A Redis sends a few kilobytes. Other lines of a longer text are not read: 32 MB of them would take a
 * second.
 */
#define INFO_MAX ((size_t)128 * 1024)

/* Returns the value of a line `NAME:VALUE`; an empty text if there is none. */
static struct field value_of(const char *text, const char *name)
{
        size_t length = strlen(name);
        const char *end = text + strnlen(text, INFO_MAX);

        for (const char *line = text, *next; line < end; line = next + 1) {
                next = memchr(line, '\n', (size_t)(end - line)) ?: end;
                if ((size_t)(next - line) > length && memcmp(line, name, length) == 0 && line[length] == ':')
                        return (struct field){.text = line + length + 1,
                                              .len = strcspn(line + length + 1, "\r\n")};
        }
        return (struct field){.text = ""};
}

static bool is(const char *text, const char *name, const char *expected)
{
        const struct field value = value_of(text, name);

        return value.len == strlen(expected) && memcmp(value.text, expected, value.len) == 0;
}

uint64_t redis_info_number(const char *text, const char *name)
{
        const char *value = value_of(text, name).text;

        /* A negative number would be a large one. */
        return *value >= '0' && *value <= '9' ? strtoull(value, NULL, 10) : 0;
}

void redis_info_take(const char *text, struct redis_facts *facts)
{
        const struct field policy = value_of(text, "maxmemory_policy");

        facts->has_info = true;
        snprintf(facts->policy, sizeof(facts->policy), "%.*s",
                 (int)MIN(policy.len, sizeof(facts->policy) - 1), policy.text);
        printable_replace(facts->policy, strlen(facts->policy), false);
        facts->has_limit = redis_info_number(text, "maxmemory") > 0;
        facts->evicted = redis_info_number(text, "evicted_keys");
        facts->snapshot_failed = is(text, "rdb_last_bgsave_status", "err");
        facts->is_appending = is(text, "aof_enabled", "1");
}
