/* SPDX-License-Identifier: MIT */
/* What a Resque worker looks like from outside; see the header. */
#include "frameworks/resque/resque.h"
#include "base/usec.h"
#include "model/worker.h"
#include "settings/traits.h"
#include <string.h>

const struct traits resque_traits = {
        .name = "resque",
        .title = "Resque",
        .id = 4,
        .untried = true,
        .has_work_list = true,
        .memory_of_tree = true,
        .tells_busy = true,
        /* It beats once in 60 s, from a thread of its own, and is held to be dead by others after 300. */
        .lives_as_beat = true,
        .title_completes = true,
        .jobs_outlive_it = true,
        .stale_usec = 300 * USEC_PER_SEC,
};

#define IDENTITY_MAX 4096

char *resque_key(const char *namespace, const char *name, const char *suffix)
{
        return decode_key(namespace && *namespace ? namespace : RESQUE_NAMESPACE, name, suffix);
}

bool resque_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid)
{
        /* Queues may have anything else in their names. */
        return len <= IDENTITY_MAX && !memchr(text, '\0', len) &&
               decode_host_pid(text, len, ret_host_len, ret_pid);
}

bool resque_beat_decode(const struct field *field, struct heartbeat *ret)
{
        uint64_t beat_usec;

        if (!decode_iso8601(field, &beat_usec))
                return false;
        *ret = (struct heartbeat){.beat_usec = beat_usec, .concurrency = 1};
        return true;
}

static bool begins(const char *text, const char *prefix)
{
        return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* What follows `resque-VERSION: ` from this place on; NULL: it is none. */
static const char *after_version(const char *name, struct title *title)
{
        const char *version = name + strlen("resque-");
        size_t len = strspn(version, "0123456789abcdefghijklmnopqrstuvwxyz.");

        if (*version < '0' || *version > '9' || len >= sizeof(title->version) || !begins(version + len, ": "))
                return NULL;
        memcpy(title->version, version, len);
        title->version[len] = '\0';
        return version + len + strlen(": ");
}

bool resque_title_parse(const char *title, struct title *ret)
{
        struct title parsed = {.concurrency = 1};
        const char *what = NULL;

        for (const char *name = title; !what && (name = strstr(name, "resque-")); name++)
                what = after_version(name, &parsed);
        if (!what)
                return false;
        parsed.maybe_child = begins(what, "Processing ");
        parsed.busy = parsed.maybe_child || begins(what, "Forked ");
        parsed.quiet = strcmp(what, "Paused") == 0;
        if (parsed.busy == 0 && !parsed.quiet && !begins(what, "Waiting for "))
                return false;
        *ret = parsed;
        return true;
}
