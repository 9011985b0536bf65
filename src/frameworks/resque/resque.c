/* SPDX-License-Identifier: MIT */
/* The external interfaces of a Resque worker; see the header. */
#include "frameworks/resque/resque.h"
#include "base/usec.h"
#include "model/job.h"
#include "model/worker.h"
#include "settings/traits.h"
#include "wire/json.h"
#include <string.h>

const struct traits resque_traits = {
        .name = "resque",
        .title = "Resque",
        .id = 4,
        .untried = true,
        .has_work_list = true,
        .memory_of_tree = true,
        .reports_busy = true,
        /* A thread of its own sends a heartbeat every 60 s; other workers consider the worker dead after
         * 300 s. */
        .process_is_heartbeat = true,
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
        /* Queue names may contain all other characters. */
        return len <= IDENTITY_MAX && !memchr(text, '\0', len) &&
               decode_host_pid(text, len, ret_host_len, ret_pid);
}

bool resque_heartbeat_decode(const struct field *field, struct heartbeat *ret)
{
        uint64_t sent_usec;

        if (!decode_iso8601(field, &sent_usec))
                return false;
        *ret = (struct heartbeat){.sent_usec = sent_usec, .concurrency = 1};
        return true;
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

/* Returns the job data of ActiveJob's adapter; NULL: not a job of ActiveJob. */
static const json_t *wrapped_of(const json_t *payload)
{
        const json_t *inner = json_array_get(json_object_get(payload, "args"), 0);

        return json_is_string(json_object_get(inner, "job_class")) &&
                               json_is_string(json_object_get(inner, "job_id"))
                       ? inner
                       : NULL;
}

static int take_job(const json_t *root, struct job *job)
{
        const json_t *payload = json_object_get(root, "payload"), *wrapped = wrapped_of(payload);
        const json_t *run_at = json_object_get(root, "run_at");
        const struct field at = {.text = json_string_value(run_at), .len = json_string_length(run_at)};

        (void)decode_iso8601(&at, &job->started_usec);
        int r = json_take_text(root, "queue", &job->queue);
        if (r >= 0)
                r = json_take_text(wrapped ?: payload, wrapped ? "job_class" : "class", &job->class);
        if (r >= 0 && wrapped)
                r = json_take_text(wrapped, "job_id", &job->jid);
        if (r >= 0 && !wrapped)
                r = (job->jid = strdup("-")) ? 0 : -ENOMEM;
        return r;
}

int resque_job_decode(struct job *job)
{
        _cleanup_json_ json_t *root = NULL;
        int r = decode_job(job->entry, job->entry_len, &root);

        return r < 0 ? r : take_job(root, job);
}
