/* SPDX-License-Identifier: MIT */
/* The external interfaces of a Resque worker; see the header. */
#include "frameworks/resque/resque.h"
#include "frameworks/framework.h"
#include <signal.h>

const struct traits resque_traits = {
        .name = "resque",
        .title = "Resque",
        .id = 4,
        .stand_in = true,
        .has_work_list = true,
        .memory_of_tree = true,
        .reports_busy = true,
        .counts_outcomes = true,
        /* A separate thread of the worker sends a heartbeat every 60 s. Other workers consider this worker
         * dead after 300 s. */
        .process_is_heartbeat = true,
        .title_completes = true,
        .jobs_outlive_it = true,
        .stale_usec = 300 * USEC_PER_SEC,
};

#define IDENTITY_MAX 4096

bool resque_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid)
{
        /* Queue names may contain all other characters. */
        return len <= IDENTITY_MAX && !memchr(text, '\0', len) &&
               decode_host_pid(text, len, ret_host_len, ret_pid);
}

static bool begins(const char *text, const char *prefix)
{
        return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Returns the text after `resque-VERSION: ` if name begins with that; else NULL. */
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

const struct framework resque_framework = {
        .traits = &resque_traits,
        .quiet_signal = SIGUSR2,
        .stop_signal = SIGQUIT,
        /* After QUIT the worker waits for the child that runs its job; the child would outlive the worker if
         * that were killed. After TERM the worker ends the child and reports the job as failed. No
         * wake_signal: CONT would make a worker accept jobs again. */
        .cut_off_signal = SIGTERM,
        .title_parse = resque_title_parse,
        .title_may_lack = true,
        .identity_parse = resque_identity_parse,
        .member_nsec = 500,
        .has_queues = true,
};
