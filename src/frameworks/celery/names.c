/* SPDX-License-Identifier: MIT */
/* The names of Celery in Redis; see the header. */
#include "frameworks/celery/names.h"
#include "base/macro.h"
#include <stdio.h>
#include <string.h>

static const char *text_or_empty(const char *text)
{
        return text ?: "";
}

/* Returns the name of a channel. */
static char *channel(const struct celery_names *names, const char *exchange, const char *suffix)
{
        const char *key_prefix = text_or_empty(names->key_prefix);
        char *name;
        int r;

        if (names->fanout_prefix)
                r = asprintf(&name, "%s%s%s%s", key_prefix, names->fanout_prefix, exchange, suffix);
        else
                r = asprintf(&name, "%s/%u.%s%s", key_prefix, names->database, exchange, suffix);
        return r < 0 ? NULL : name;
}

char *celery_event_pattern(const struct celery_names *names)
{
        static const char suffix[] = "/worker.*";
        _cleanup_free_ char *name = channel(names, names->events ?: "celeryev", "");

        if (!name)
                return NULL;
        char *pattern = malloc(2 * strlen(name) + sizeof(suffix)), *out = pattern;
        if (!pattern)
                return NULL;
        for (const char *at = name; *at; at++) {
                if (strchr("*?[]^-\\", *at))
                        *out++ = '\\';
                *out++ = *at;
        }
        memcpy(out, suffix, sizeof(suffix));
        return pattern;
}

char *celery_request_channel(const struct celery_names *names)
{
        return channel(names, names->control ?: "celery", ".pidbox");
}

char *celery_list_key(const struct celery_names *names, const char *name)
{
        char *key;

        return asprintf(&key, "%s%s", text_or_empty(names->key_prefix), name) < 0 ? NULL : key;
}

char *celery_queue_key(const struct celery_names *names, const char *queue, unsigned priority)
{
        char *key;

        if (priority == 0)
                return celery_list_key(names, queue);
        if (asprintf(&key, "%s%s\x06\x16%u", text_or_empty(names->key_prefix), queue, priority) < 0)
                return NULL;
        return key;
}
