/* SPDX-License-Identifier: MIT */
/* The backend of a reader of Redis: its connections, the live object of a framework that has one, and the
 * queries that it answers. */
#include "base/fd.h"
#include "frameworks/queue_reader.h"
#include "queries/configuration.h"
#include "reader/backend.h"
#include "reader/configure.h"
#include "reader/live.h"
#include "reader/redis_ask.h"
#include "reader/server.h"
#include "redis/connection.h"
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

struct redis_backend;

/* Has sqmgr connect a Unix socket for one connection. */
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

        struct unix_connector connectors[2]; /* for commands, and for the subscription of the live object */
        struct unix_connector *connecting;   /* sqmgr was asked on its behalf; NULL: none */
        sd_event_source *connections_io;     /* NULL: the connections open Unix sockets themselves */

        struct reader_live live;
};

/* A query that the live object answers. */
struct live_work {
        struct live_ask live;
        struct ask *ask;
};

static void on_redis_state(struct redis *redis _unused_, enum reader_state state,
                           const struct error_report *error, void *userdata)
{
        const struct redis_backend *backend = userdata;
        /* With a subscription, both connections must be up. */
        const struct redis *subscriber = backend->live.server.subscriber;
        struct reader_report report = {.connections = redis_connection_count(backend->link.redis)};

        if (subscriber)
                report.connections += redis_connection_count(subscriber);
        if (subscriber && redis_state(backend->link.redis) == READER_STATE_CONNECTED) {
                state = redis_state(subscriber);
                error = redis_error(subscriber);
        } else if (subscriber) {
                state = redis_state(backend->link.redis);
                error = redis_error(backend->link.redis);
        }
        report.state = state;

        if (error)
                report.error = *error;
        snprintf(report.server, sizeof(report.server), "%s", redis_server_text(backend->link.redis) ?: "");
        reader_server_report(backend->server, &report);
}

/* sqmgr makes one connection at a time. */
static void connect_next(struct redis_backend *backend)
{
        FOREACH_ELEMENT(connector, backend->connectors) {
                struct codec_writer writer = {0};

                if (backend->connecting || !connector->connected)
                        continue;
                backend->connecting = connector;
                codec_write_number(&writer, READER_CONNECT);
                reader_server_send(backend->server, &writer);
        }
}

static void connector_request(struct connector *base, void (*done)(int fd, void *userdata), void *userdata)
{
        struct unix_connector *connector = (struct unix_connector *)base;

        connector->connected = done;
        connector->userdata = userdata;
        if (connector->backend->connecting == connector)
                connector->backend->connecting = NULL;
        connect_next(connector->backend);
}

static void connector_cancel(struct connector *base)
{
        struct unix_connector *connector = (struct unix_connector *)base;

        connector->connected = NULL;
        if (connector->backend->connecting == connector)
                connector->backend->connecting = NULL;
        connect_next(connector->backend);
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
        struct unix_connector *connector = TAKE_PTR(backend->connecting);
        void (*connected)(int fd, void *userdata) = connector ? TAKE_PTR(connector->connected) : NULL;
        connect_next(backend);
        if (connected)
                connected(connection >= 0 ? TAKE_FD(connection)
                          : error < 0     ? error
                                          : -EBADMSG,
                          connector->userdata);
        return 0;
}

static int begin_connectors(struct redis_backend *backend)
{
        int fd = reader_server_connections_fd(backend->server);

        for (size_t i = 0; i < ELEMENTSOF(backend->connectors); i++)
                backend->connectors[i] = (struct unix_connector){
                        .connector = {.request = connector_request, .cancel = connector_cancel},
                        .backend = backend,
                };
        return fd < 0 ? 0
                      : sd_event_add_io(reader_server_event(backend->server), &backend->connections_io, fd,
                                        EPOLLIN, on_connection, backend);
}

static int begin_live(struct redis_backend *backend)
{
        const struct reader_live_request request = {
                .event = reader_server_event(backend->server),
                .configuration = backend->configuration,
                .redis = backend->link.redis,
                .connector = backend->connections_io ? &backend->connectors[1].connector : NULL,
                .on_state = on_redis_state,
                .userdata = backend,
        };

        return reader_live_begin(&backend->live, &request);
}

static void backend_end(void *userdata)
{
        struct redis_backend *backend = userdata;

        redis_free(backend->link.redis);
        reader_live_end(&backend->live);
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
        int r = begin_connectors(backend);
        if (r >= 0)
                r = configure_redis(reader_server_event(server), configuration, on_redis_state, backend,
                                    &backend->link.redis, refusal);
        if (r >= 0 && backend->link.redis && backend->connections_io)
                redis_connect_by(backend->link.redis, &backend->connectors[0].connector);
        if (r >= 0 && backend->link.redis)
                r = begin_live(backend);
        if (r < 0 || !backend->link.redis)
                backend_end(backend);
        else
                *ret = backend;
        return r;
}

static void on_live_done(struct live_ask *live)
{
        struct live_work *work = (struct live_work *)live;
        struct ask *ask = work->ask;

        free(work);
        ask_done(ask);
}

/* Returns true if the live object answers the query. */
static bool ask_live(struct redis_backend *backend, struct ask *ask)
{
        struct live_work *work;

        if (!reader_live_answers(&backend->live, ask->answer.kind))
                return false;
        work = calloc(1, sizeof(*work));
        if (!work) {
                ask_fail_errno(ask, -ENOMEM);
                return true;
        }
        *work = (struct live_work){
                .live = {.query = ask_query(ask), .answer = &ask->answer, .done = on_live_done}, .ask = ask};
        reader_live_ask(&backend->live, &work->live);
        return true;
}

static void backend_ask(void *userdata, struct ask *ask)
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

        if (ask_live(userdata, ask))
                return;
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
