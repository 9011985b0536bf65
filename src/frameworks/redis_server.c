/* SPDX-License-Identifier: MIT */
/* A Redis as a framework uses it: its connection, and the queries that it answers. */
#include "base/text.h"
#include "frameworks/backends.h"
#include "frameworks/heartbeat_format.h"
#include "frameworks/queue_reader.h"
#include "frameworks/redis_ask.h"
#include "frameworks/redis_format.h"
#include "redis/redis.h"
#include "redis/tls.h"
#include "settings/redis_url.h"
#include "settings/settings.h"
#include <stdio.h>
#include <string.h>

/* Returns the key that is read first: for records, the set of identities. Where only queues are read, any key
 * of the application. */
static char *probe_key(const struct redis_format *format, const char *namespace)
{
        const struct heartbeat_format *heartbeats = format->heartbeats;

        return heartbeats ? heartbeats->key(namespace, heartbeats->set, NULL)
                          : format->queues->key(namespace, "", "sqmgr");
}

static int probe(struct redis *redis, const struct redis_format *format, const char *namespace)
{
        _cleanup_free_ char *key = probe_key(format, namespace);

        return key ? redis_probe(redis, key) : -ENOMEM;
}

int redis_judge_tls(const struct redis_settings *settings, struct settings_tls_refusal *ret)
{
        struct tls *tls;
        int r = tls_new(settings, &tls, ret);

        if (r >= 0)
                tls_free(tls);
        return r;
}

struct redis_backend {
        struct redis_link link; /* the first member: see frameworks/redis_ask.h */
        struct reader *reader;
};

static void on_redis_state(struct redis *redis, enum reader_state state, const struct error_report *error,
                           void *userdata)
{
        const struct redis_backend *backend = userdata;
        struct reader_report report = {.state = state, .connections = redis_connection_count(redis)};

        if (error)
                report.error = *error;
        snprintf(report.server, sizeof(report.server), "%s", redis_server_text(redis) ?: "");
        reader_report_state(backend->reader, &report);
}

static void on_decoding(bool begins, void *userdata)
{
        reader_decoding(userdata, begins);
}

/* Returns the settings for the server of these options. */
static struct redis_settings settings_of(const struct reader_options *options)
{
        struct redis_settings settings = *options->settings;

        if (options->url) {
                settings.url = (char *)options->url;
                settings.sentinels = NULL;
        }
        if (settings.timeout == 0)
                settings.timeout = SERVER_TIMEOUT_USEC;
        return settings;
}

static char *backend_url_text(const struct reader_options *options)
{
        const struct redis_settings settings = settings_of(options);
        _cleanup_redis_url_ struct redis_url url = {0};
        char *text;

        if (!settings.sentinels)
                return redis_url_redact(settings.url);
        return redis_url_parse(settings.url, &url, NULL) >= 0 &&
                               asprintf(&text, "redis%s://%s/%u", url.tls ? "s" : "", settings.master_name,
                                        url.db) >= 0
                       ? text
                       : NULL;
}

static void backend_end(void *userdata)
{
        struct redis_backend *backend = userdata;

        redis_free(backend->link.redis);
        FOREACH_ELEMENT(reading, backend->link.queue_readings)
                queue_reader_free(reading->queue_reader);
        free(backend->link.namespace);
        free(backend);
}

static int begin(struct redis_backend *backend, const struct reader_options *options,
                 struct settings_tls_refusal *refusal)
{
        const struct redis_settings settings = settings_of(options);
        struct redis_link *link = &backend->link;

        link->format = redis_format_of(options->framework);
        if (!link->format)
                return -ENOTSUP;
        int r = text_copy(settings.namespace, &link->namespace);
        if (r >= 0)
                r = redis_new(reader_event(backend->reader), &settings, refusal, on_redis_state, backend,
                              &link->redis);
        if (r < 0)
                return r;
        redis_on_decoding(link->redis, on_decoding, backend->reader);
        return probe(link->redis, link->format, link->namespace);
}

static int backend_begin(struct reader *reader, const struct reader_options *options,
                         struct error_report *error, void **ret)
{
        struct settings_tls_refusal refusal = {.file = _SETTINGS_TLS_MAX};
        struct redis_backend *backend = calloc(1, sizeof(*backend));

        if (!backend)
                return -ENOMEM;
        backend->reader = reader;
        int r = begin(backend, options, &refusal);
        if (r >= 0) {
                *ret = backend;
                return 0;
        }
        backend_end(backend);
        if (refusal.file != _SETTINGS_TLS_MAX)
                error_report_set(error, "%s", refusal.why);
        else if (r != -ENOMEM)
                error_report_set(error, "cannot connect: %s", strerror(-r));
        return r;
}

static void backend_ask(_unused_ void *userdata, struct ask *ask)
{
        static void (*const asks[_QUERY_KIND_MAX])(struct ask * ask) = {
                [QUERY_HEARTBEAT] = ask_heartbeat,
                [QUERY_WORK_LIST] = ask_work_list,
                [QUERY_SCAN] = ask_scan,
                [QUERY_SCANNERS] = ask_scanners,
                [QUERY_SCAN_LEAVE] = ask_scan_leave,
                [QUERY_REQUEUE] = ask_requeue,
                [QUERY_SIGNAL] = ask_signal,
                [QUERY_QUEUES] = ask_queues,
                [QUERY_JOBS] = ask_jobs,
                [QUERY_DIAGNOSIS] = ask_diagnosis,
        };
        enum query_kind kind = ask_query(ask)->kind;
        bool of_heartbeats = kind == QUERY_HEARTBEAT || kind == QUERY_WORK_LIST || kind == QUERY_SCAN ||
                             kind == QUERY_SCANNERS;
        void (*ask_kind)(struct ask * ask) = asks[kind];

        if (ask_kind && (!of_heartbeats || ask_format(ask)->heartbeats))
                ask_kind(ask);
        else
                ask_fail_unknown(ask);
}

static usec_t backend_rtt_usec(const void *userdata)
{
        const struct redis_backend *backend = userdata;

        return redis_rtt_usec(backend->link.redis);
}

const struct reader_backend redis_backend = {
        .url_text = backend_url_text,
        .begin = backend_begin,
        .end = backend_end,
        .ask = backend_ask,
        .rtt_usec = backend_rtt_usec,
};
