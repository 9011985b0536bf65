/* SPDX-License-Identifier: MIT */
/* The backend of a reader of Redis: its connection, and the queries that it answers. */
#include "base/fd.h"
#include "frameworks/heartbeat_format.h"
#include "frameworks/queue_reader.h"
#include "frameworks/redis_format.h"
#include "queries/answer.h"
#include "queries/configuration.h"
#include "reader/backend.h"
#include "reader/redis_ask.h"
#include "reader/server.h"
#include "redis/connection.h"
#include "redis/redis.h"
#include "redis/tls.h"
#include "settings/redis_url.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define PATH_SIZE 32

/* OpenSSL wants paths, and this process may open no file: the bytes become files of its own memory. */
struct memory_file {
        int fd;
        char path[PATH_SIZE];
};

static int make_file(const struct reader_file *file, struct memory_file *ret)
{
        int r;

        ret->fd = memfd_create("tls", MFD_CLOEXEC);
        if (ret->fd < 0)
                return -errno;
        r = fd_write_all(ret->fd, file->bytes, file->length);
        snprintf(ret->path, sizeof(ret->path), "/proc/self/fd/%d", ret->fd);
        return r;
}

static int load_tls(const struct reader_configuration *configuration, struct tls **ret,
                    struct settings_tls_refusal *refusal)
{
        struct memory_file files[_SETTINGS_TLS_MAX] = {{-1, ""}, {-1, ""}, {-1, ""}};
        const char *paths[_SETTINGS_TLS_MAX] = {NULL};
        int r = 0;

        for (size_t i = 0; i < _SETTINGS_TLS_MAX && r >= 0; i++) {
                if (!configuration->files[i].name)
                        continue;
                r = make_file(&configuration->files[i], &files[i]);
                paths[i] = files[i].path;
        }
        const struct redis_settings settings = {
                .tls_ca_file = (char *)paths[SETTINGS_TLS_CA],
                .tls_cert_file = (char *)paths[SETTINGS_TLS_CERT],
                .tls_key_file = (char *)paths[SETTINGS_TLS_KEY],
        };
        const struct redis_settings shown = {
                .tls_ca_file = configuration->files[SETTINGS_TLS_CA].name,
                .tls_cert_file = configuration->files[SETTINGS_TLS_CERT].name,
                .tls_key_file = configuration->files[SETTINGS_TLS_KEY].name,
        };
        if (r >= 0)
                r = tls_new(&settings, &shown, ret, refusal);
        FOREACH_ELEMENT(file, files)
                close_fd(file->fd);
        return r;
}

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
                .timeout = configuration->timeout,
        };
        const struct redis_format *format = redis_format_of(configuration->framework);
        _cleanup_redis_url_ struct redis_url parsed = {0};
        struct redis *redis = NULL;
        struct tls *tls = NULL;

        *refusal = (struct settings_tls_refusal){.file = _SETTINGS_TLS_MAX};
        int r = format && settings.url ? redis_url_parse(settings.url, &parsed, NULL) : -EBADMSG;

        if (r >= 0 && (parsed.tls || configuration->check))
                r = load_tls(configuration, &tls, refusal);
        if (r < 0 || configuration->check) {
                if (tls)
                        tls_free(tls);
                return r;
        }
        r = redis_new(event, &settings, tls, on_state, userdata, &redis);
        if (r < 0) {
                if (tls)
                        tls_free(tls);
                return r;
        }
        r = probe(redis, format, configuration->namespace);
        if (r < 0)
                redis_free(redis);
        else
                *ret = redis;
        return r;
}

struct redis_backend;

/* Has sqmgr connect a Unix socket. */
struct unix_connector {
        struct connector connector;
        struct redis_backend *backend;
        void (*connected)(int fd, void *userdata); /* NULL: no request is pending */
        void *userdata;
};

struct redis_backend {
        struct redis_link link; /* the first member: see reader/redis_ask.h */
        struct reader_server *server;
        const struct reader_configuration *configuration;

        struct unix_connector connector;
        sd_event_source *connections_io; /* NULL: the connection opens Unix sockets itself */
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

static void connector_request(struct connector *base, void (*done)(int fd, void *userdata), void *userdata)
{
        struct unix_connector *connector = (struct unix_connector *)base;
        struct codec_writer writer = {0};

        connector->connected = done;
        connector->userdata = userdata;
        codec_write_number(&writer, READER_CONNECT);
        reader_server_send(connector->backend->server, &writer);
}

static void connector_cancel(struct connector *base)
{
        ((struct unix_connector *)base)->connected = NULL;
}

/* A datagram is -errno, or 0 with a socket attached. One that answers an earlier request does no harm: it is
 * the same server. */
static int on_connection(sd_event_source *source, int fd, uint32_t events _unused_, void *userdata)
{
        struct redis_backend *backend = userdata;
        int error = -EBADMSG;
        _cleanup_close_ int connection = -1;

        ssize_t n = fd_receive(fd, &error, sizeof(error), &connection, MSG_DONTWAIT);
        if (n <= 0) {
                if (n != -EAGAIN)
                        (void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
                return 0;
        }
        void (*connected)(int fd, void *userdata) = TAKE_PTR(backend->connector.connected);
        if (connected)
                connected(connection >= 0 ? TAKE_FD(connection)
                          : error < 0     ? error
                                          : -EBADMSG,
                          backend->connector.userdata);
        return 0;
}

static int begin_connector(struct redis_backend *backend)
{
        int fd = reader_server_connections_fd(backend->server);

        backend->connector = (struct unix_connector){
                .connector = {.request = connector_request, .cancel = connector_cancel},
                .backend = backend,
        };
        return fd < 0 ? 0
                      : sd_event_add_io(reader_server_event(backend->server), &backend->connections_io, fd,
                                        EPOLLIN, on_connection, backend);
}

static void backend_end(void *userdata)
{
        struct redis_backend *backend = userdata;

        redis_free(backend->link.redis);
        FOREACH_ELEMENT(reading, backend->link.queue_readings)
                queue_reader_free(reading->queue_reader);
        sd_event_source_disable_unref(backend->connections_io);
        free(backend);
}

static int backend_begin(struct reader_server *server, const struct reader_configuration *configuration,
                         struct settings_tls_refusal *refusal, void **ret)
{
        struct redis_backend *backend = calloc(1, sizeof(*backend));

        if (!backend)
                return -ENOMEM;
        backend->server = server;
        backend->configuration = configuration;
        int r = begin_connector(backend);
        if (r >= 0)
                r = configure_redis(reader_server_event(server), configuration, on_redis_state, backend,
                                    &backend->link.redis, refusal);
        if (r >= 0 && backend->link.redis && backend->connections_io)
                redis_connect_by(backend->link.redis, &backend->connector.connector);
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
