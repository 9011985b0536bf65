/* SPDX-License-Identifier: MIT */
/* The backend of a reader of Redis: its connection, and the queries that it answers. */
#include "frameworks/heartbeat_format.h"
#include "frameworks/queue_reader.h"
#include "frameworks/redis_format.h"
#include "queries/answer.h"
#include "queries/configuration.h"
#include "reader/backend.h"
#include "reader/redis_ask.h"
#include "reader/server.h"
#include "redis/redis.h"
#include "redis/tls.h"
#include <stdio.h>

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

/* Returns 0 with *ret, which connects once the loop runs, to be freed by redis_free(). With
 * configuration->check, only loads the files for TLS, and leaves *ret unchanged. Returns -EINVAL with the TLS
 * file at fault in *refusal, or another -errno. refusal->file is _SETTINGS_TLS_MAX if no file is at fault. */
static int configure_redis(sd_event *event, const struct reader_configuration *configuration,
                           redis_state_fn on_state, void *userdata, struct redis **ret,
                           struct settings_tls_refusal *refusal)
{
        const struct redis_settings settings = {
                .url = configuration->url ?: configuration->default_url,
                .username = configuration->username,
                .password = configuration->password,
                .sentinels = configuration->url ? NULL : configuration->sentinels,
                .master_name = configuration->master_name,
                .sentinel_password = configuration->sentinel_password,
                .tls_ca_file = configuration->tls_files[SETTINGS_TLS_CA],
                .tls_cert_file = configuration->tls_files[SETTINGS_TLS_CERT],
                .tls_key_file = configuration->tls_files[SETTINGS_TLS_KEY],
                .tls_unverified = configuration->tls_unverified,
                .timeout = configuration->timeout,
        };
        const struct redis_format *format = redis_format_of(configuration->framework);
        struct redis *redis = NULL;
        struct tls *tls;

        *refusal = (struct settings_tls_refusal){.file = _SETTINGS_TLS_MAX};
        if (configuration->check) {
                int r = tls_new(&settings, &tls, refusal);

                if (r >= 0)
                        tls_free(tls);
                return r;
        }
        int r = format && settings.url ? redis_new(event, &settings, refusal, on_state, userdata, &redis)
                                       : -EBADMSG;
        if (r < 0)
                return r;
        r = probe(redis, format, configuration->namespace);
        if (r < 0)
                redis_free(redis);
        else
                *ret = redis;
        return r;
}

struct redis_backend {
        struct redis_link link; /* the first member: see reader/redis_ask.h */
        struct reader_server *server;
};

static void on_redis_state(struct redis *redis _unused_, enum reader_state state,
                           const struct error_report *error, void *userdata)
{
        const struct redis_backend *backend = userdata;
        struct reader_report report = {
                .state = state,
                .connections = redis_connection_count(backend->link.redis),
        };

        if (error)
                report.error = *error;
        snprintf(report.server, sizeof(report.server), "%s", redis_server_text(backend->link.redis) ?: "");
        reader_server_report(backend->server, &report);
}

static void backend_end(void *userdata)
{
        struct redis_backend *backend = userdata;

        redis_free(backend->link.redis);
        FOREACH_ELEMENT(reading, backend->link.queue_readings)
                queue_reader_free(reading->queue_reader);
        free(backend);
}

static int backend_begin(struct reader_server *server, const struct reader_configuration *configuration,
                         struct settings_tls_refusal *refusal, void **ret)
{
        struct redis_backend *backend = calloc(1, sizeof(*backend));

        if (!backend)
                return -ENOMEM;
        backend->server = server;
        int r = configure_redis(reader_server_event(server), configuration, on_redis_state, backend,
                                &backend->link.redis, refusal);
        if (r < 0 || !backend->link.redis)
                backend_end(backend);
        else
                *ret = backend;
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
        void (*ask_kind)(struct ask * ask) = asks[ask->answer.kind];

        if (ask_kind)
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
        .begin = backend_begin,
        .end = backend_end,
        .ask = backend_ask,
        .rtt_usec = backend_rtt_usec,
};
