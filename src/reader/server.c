/* SPDX-License-Identifier: MIT */
/* A reader: its connections to sqmgr and to one server, and the queries in progress. */
#include "reader/server.h"
#include "base/fd.h"
#include "frameworks/queue_reader.h"
#include "io/message_socket.h"
#include "queries/configuration.h"
#include "reader/ask.h"
#include "reader/configure.h"
#include "reader/live.h"
#include "redis/connection.h"
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* Limit of answers that sqmgr has not read yet, in bytes. sqmgr reads continuously, so more is a fault. */
#define SEND_MAX (2 * ANSWER_BYTES_MAX)

/* Has sqmgr connect a Unix socket for one connection. */
struct unix_connector {
        struct connector connector;
        struct reader_server *server;
        void (*connected)(int fd, void *userdata); /* NULL: no request is pending */
        void *userdata;
};

struct reader_server {
        sd_event *event;
        struct message_socket *message_socket;
        const struct reader_server_ops *ops;
        void *userdata;

        struct unix_connector connectors[2]; /* for commands, and for the subscription of the live object */
        struct unix_connector *connecting;   /* sqmgr was asked on its behalf; NULL: none */
        int connections_fd;
        sd_event_source *connections_io;

        struct reader_configuration configuration;
        struct redis *redis; /* NULL: not configured yet */
        struct reader_live live;
        struct queue_reading queue_readings[2];
        struct ask *kept; /* see ask_keep() */
        bool failed;      /* sqmgr cannot be reached */
        bool freed;
};

static void send_message(struct reader_server *server, struct codec_writer *writer)
{
        if (!server->freed &&
            (writer->failed || message_socket_send(server->message_socket, writer->bytes, writer->size) < 0))
                server->failed = true;
        free(writer->bytes);
}

/* Ends this reader after a failed send: a lost answer would leave a query of sqmgr pending forever. */
static void end_if_failed(struct reader_server *server)
{
        if (server->failed && !server->freed)
                server->ops->on_end(server->userdata);
}

void ask_done(struct ask *ask)
{
        struct reader_server *server = ask->server;
        struct codec_writer writer = {0};

        ask->answer.rtt_usec = server->redis ? redis_rtt_usec(server->redis) : 0;
        answer_write(&writer, ask->read.id, &ask->answer);
        if (writer.size > ANSWER_BYTES_MAX) {
                answer_clear(&ask->answer);
                ask->answer.status = ANSWER_REFUSED;
                error_report_set(&ask->answer.error, "the answer is too large");
                writer.size = 0;
                answer_write(&writer, ask->read.id, &ask->answer);
        }
        send_message(server, &writer);
        LIST_UNLINK(server->kept, ask);
        answer_clear(&ask->answer);
        query_read_clear(&ask->read);
        free(ask);
}

void ask_fail(struct ask *ask, enum answer_status status, const char *format, ...)
{
        va_list arguments;

        answer_clear(&ask->answer);
        ask->answer.status = status;
        ask->answer.error = (struct error_report){0};
        va_start(arguments, format);
        vsnprintf(ask->answer.error.text, sizeof(ask->answer.error.text), format, arguments);
        va_end(arguments);
        ask_done(ask);
}

void ask_fail_as(struct ask *ask, enum answer_status status, const struct error_report *error)
{
        answer_clear(&ask->answer);
        ask->answer.status = status;
        ask->answer.error = *error;
        ask_done(ask);
}

void ask_quote_refusal(struct error_report *ret, const redisReply *reply)
{
        error_report_quote(ret, reply->str, "command refused");
}

void ask_fail_errno(struct ask *ask, int error)
{
        ask_fail(ask, ANSWER_LOST, "%s", error == -ENOMEM ? "out of memory" : "connection lost");
}

bool ask_failed(struct ask *ask, const redisReply *reply)
{
        if (reply && reply->type != REDIS_REPLY_ERROR)
                return false;
        struct error_report error;
        if (reply)
                ask_quote_refusal(&error, reply);
        else
                error_report_set(&error, "connection lost");
        ask_fail_as(ask, reply ? ANSWER_REFUSED : ANSWER_LOST, &error);
        return true;
}

void ask_command(struct ask *ask, redis_reply_fn callback, struct redis_command *command, bool forbiddable)
{
        struct redis *redis = ask->server->redis;
        int r = forbiddable
                        ? redis_command_forbiddable(redis, callback, ask, command->argc, command->argv, NULL)
                        : redis_command(redis, callback, ask, command->argc, command->argv, NULL);

        command_clear(command);
        if (r < 0)
                ask_fail_errno(ask, r);
}

void ask_keep(struct ask *ask, void (*cancel)(struct ask *ask))
{
        ask->cancel = cancel;
        ask->next = ask->server->kept;
        ask->server->kept = ask;
}

struct queue_reading *ask_queue_reading(const struct ask *ask, bool named)
{
        return &ask->server->queue_readings[named];
}

struct redis *ask_redis(const struct ask *ask)
{
        return ask->server->redis;
}

const struct redis_format *ask_format(const struct ask *ask)
{
        return redis_format_of(ask->server->configuration.framework);
}

const char *ask_namespace(const struct ask *ask)
{
        return ask->server->configuration.namespace;
}

sd_event *ask_event(const struct ask *ask)
{
        return ask->server->event;
}

static void on_redis_state(struct redis *redis _unused_, enum redis_state state,
                           const struct error_report *error, void *userdata)
{
        static const enum reader_state states[] = {
                [REDIS_STATE_CONNECTING] = READER_STATE_CONNECTING,
                [REDIS_STATE_CONNECTED] = READER_STATE_CONNECTED,
                [REDIS_STATE_DOWN] = READER_STATE_DOWN,
        };
        struct reader_server *server = userdata;
        /* With a subscription, both connections must be up. */
        const struct redis *subscriber = server->live.server.subscriber;
        struct reader_report report = {.connections = redis_connection_count(server->redis)};
        struct codec_writer writer = {0};

        if (subscriber)
                report.connections += redis_connection_count(subscriber);
        if (subscriber && redis_state(server->redis) == REDIS_STATE_CONNECTED) {
                state = redis_state(subscriber);
                error = redis_error(subscriber);
        } else if (subscriber) {
                state = redis_state(server->redis);
                error = redis_error(server->redis);
        }
        report.state = states[state];

        static_assert(ELEMENTSOF(states) == _REDIS_STATE_MAX, "a state for each");
        if (error)
                report.error = *error;
        snprintf(report.server, sizeof(report.server), "%s", redis_server_text(server->redis) ?: "");
        reader_report_write(&writer, &report);
        send_message(server, &writer);
        end_if_failed(server);
}

/* sqmgr makes one connection at a time. */
static void connect_next(struct reader_server *server)
{
        FOREACH_ELEMENT(connector, server->connectors) {
                struct codec_writer writer = {0};

                if (server->connecting || !connector->connected)
                        continue;
                server->connecting = connector;
                codec_write_number(&writer, READER_CONNECT);
                send_message(server, &writer);
        }
}

static void connector_request(struct connector *base, void (*done)(int fd, void *userdata), void *userdata)
{
        struct unix_connector *connector = (struct unix_connector *)base;

        connector->connected = done;
        connector->userdata = userdata;
        if (connector->server->connecting == connector)
                connector->server->connecting = NULL;
        connect_next(connector->server);
}

static void connector_cancel(struct connector *base)
{
        struct unix_connector *connector = (struct unix_connector *)base;

        connector->connected = NULL;
        if (connector->server->connecting == connector)
                connector->server->connecting = NULL;
        connect_next(connector->server);
}

/* A datagram is -errno, or 0 with a socket attached. One that answers an earlier request does no harm: it is
 * the same server. */
static int on_connection(sd_event_source *source, int fd, uint32_t events _unused_, void *userdata)
{
        struct reader_server *server = userdata;
        int error = -EBADMSG;
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec bytes = {.iov_base = &error, .iov_len = sizeof(error)};
        struct msghdr message = {.msg_iov = &bytes,
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = sizeof(control)};
        _cleanup_close_ int connection = -1;

        ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n <= 0) {
                if (n == 0 || (errno != EAGAIN && errno != EINTR))
                        (void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
                return 0;
        }
        const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
            header->cmsg_len == CMSG_LEN(sizeof(int)))
                memcpy(&connection, CMSG_DATA(header), sizeof(int));
        struct unix_connector *connector = TAKE_PTR(server->connecting);
        void (*connected)(int fd, void *userdata) = connector ? TAKE_PTR(connector->connected) : NULL;
        connect_next(server);
        if (connected)
                connected(connection >= 0 ? TAKE_FD(connection)
                          : error < 0     ? error
                                          : -EBADMSG,
                          connector->userdata);
        return 0;
}

static int begin_live(struct reader_server *server)
{
        const struct reader_live_request request = {
                .event = server->event,
                .configuration = &server->configuration,
                .redis = server->redis,
                .connector = server->connections_fd >= 0 ? &server->connectors[1].connector : NULL,
                .on_state = on_redis_state,
                .userdata = server,
        };

        return reader_live_begin(&server->live, &request);
}

/* Answers QUERY_CONFIGURE. */
static void configure(struct ask *ask)
{
        struct reader_server *server = ask->server;
        struct settings_tls_refusal refusal = {.file = _SETTINGS_TLS_MAX};
        int r = server->redis ? -EBADMSG : reader_configuration_read(ask_query(ask), &server->configuration);

        if (r >= 0)
                r = configure_redis(server->event, &server->configuration, on_redis_state, server,
                                    &server->redis, &refusal);
        if (r >= 0 && server->redis && server->connections_fd >= 0)
                redis_connect_by(server->redis, &server->connectors[0].connector);
        if (r >= 0 && server->redis)
                r = begin_live(server);
        if (r >= 0 && server->ops->on_configured)
                r = server->ops->on_configured(server->userdata);
        ask->answer.configure.refused = refusal.file;
        error_report_set(&ask->answer.error, "%s", refusal.why);
        if (r >= 0 || (server->configuration.check && refusal.file != _SETTINGS_TLS_MAX))
                ask_done(ask);
        else if (refusal.file != _SETTINGS_TLS_MAX)
                ask_fail(ask, ANSWER_REFUSED, "%s", refusal.why);
        else
                ask_fail(ask, ANSWER_REFUSED, "%s",
                         r == -EPROTO ? "sqmgr-reader is of another version" : strerror(-r));
}

static void on_live_done(struct live_ask *live)
{
        ask_done((struct ask *)((char *)live - offsetof(struct ask, live)));
}

static void on_message(const uint8_t *bytes, size_t n, void *userdata)
{
        struct reader_server *server = userdata;
        struct ask *ask = calloc(1, sizeof(*ask));

        if (!ask || query_read(bytes, n, &ask->read) < 0) {
                free(ask);
                server->failed = true;
                end_if_failed(server);
                return;
        }
        ask->server = server;
        ask->answer.kind = ask->read.query.kind;
        ask->live = (struct live_ask){.query = ask_query(ask), .answer = &ask->answer, .done = on_live_done};
        if (ask->answer.kind == QUERY_PING)
                ask_done(ask);
        else if (ask->answer.kind == QUERY_CONFIGURE)
                configure(ask);
        else if (server->redis && reader_live_ask(&server->live, &ask->live))
                ;
        else if (!server->redis || !server->ops->asks[ask->answer.kind])
                ask_fail(ask, ANSWER_REFUSED, "sqmgr-reader does not know this query");
        else
                server->ops->asks[ask->answer.kind](ask);
        end_if_failed(server);
}

static void on_end(int error _unused_, void *userdata)
{
        const struct reader_server *server = userdata;

        server->ops->on_end(server->userdata);
}

int reader_server_new(sd_event *event, int fd, int connections_fd, const struct reader_server_ops *ops,
                      void *userdata, struct reader_server **ret)
{
        static const struct message_socket_ops socket_ops = {.on_message = on_message, .on_end = on_end};
        static const struct message_socket_limits limits = {.receive = QUERY_BYTES_MAX, .send = SEND_MAX};
        struct reader_server *server = calloc(1, sizeof(*server));

        if (!server) {
                close_fd(fd);
                close_fd(connections_fd);
                return -ENOMEM;
        }
        *server = (struct reader_server){
                .event = sd_event_ref(event),
                .ops = ops,
                .userdata = userdata,
                .connections_fd = connections_fd,
        };
        FOREACH_ELEMENT(connector, server->connectors)
                *connector = (struct unix_connector){
                        .connector = {.request = connector_request, .cancel = connector_cancel},
                        .server = server,
                };
        int r = message_socket_new(event, fd, &limits, &socket_ops, server, &server->message_socket);
        if (r >= 0 && connections_fd >= 0)
                r = sd_event_add_io(event, &server->connections_io, connections_fd, EPOLLIN, on_connection,
                                    server);
        if (r < 0) {
                reader_server_free(server);
                return r;
        }
        *ret = server;
        return 0;
}

struct reader_server *reader_server_free(struct reader_server *server)
{
        if (!server)
                return NULL;
        server->freed = true;
        /* End the kept queries before Redis is freed; send_message() drops their answers. */
        for (struct ask *ask = server->kept; ask; ask = server->kept) {
                ask->cancel(ask);
                ask_fail_errno(ask, -ENOTCONN);
        }
        redis_free(server->redis);
        reader_live_end(&server->live);
        FOREACH_ELEMENT(reading, server->queue_readings)
                queue_reader_free(reading->queue_reader);
        message_socket_free(server->message_socket);
        sd_event_source_disable_unref(server->connections_io);
        close_fd(server->connections_fd);
        reader_configuration_clear(&server->configuration);
        sd_event_unref(server->event);
        free(server);
        return NULL;
}
