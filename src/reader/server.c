/* SPDX-License-Identifier: MIT */
/* A reader: its connection to sqmgr, its backend, and the queries in progress. */
#include "reader/server.h"
#include "base/fd.h"
#include "io/message_socket.h"
#include "queries/configuration.h"
#include "reader/ask.h"
#include "reader/backend.h"
#include <stdio.h>
#include <string.h>

/* Limit of answers that sqmgr has not read yet, in bytes. sqmgr reads continuously, so more is a fault. */
#define SEND_MAX (2 * ANSWER_BYTES_MAX)

struct reader_server {
        sd_event *event;
        struct message_socket *message_socket;
        const struct reader_server_ops *ops;
        void *userdata;

        struct reader_configuration configuration;
        bool configured;  /* QUERY_CONFIGURE was read */
        void *backend;    /* NULL: none was made */
        struct ask *kept; /* see ask_keep() */
        bool failed;      /* sqmgr cannot be reached */
        bool freed;
};

void reader_server_send(struct reader_server *server, struct codec_writer *writer)
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

        /* While the server is freed, the backend may be freed already. */
        ask->answer.rtt_usec =
                server->backend && !server->freed ? server->ops->backend->rtt_usec(server->backend) : 0;
        answer_write(&writer, ask->read.id, &ask->answer);
        if (writer.size > ANSWER_BYTES_MAX) {
                answer_clear(&ask->answer);
                ask->answer.status = ANSWER_REFUSED;
                error_report_set(&ask->answer.error, "the answer is too large");
                writer.size = 0;
                answer_write(&writer, ask->read.id, &ask->answer);
        }
        reader_server_send(server, &writer);
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

void ask_fail_unknown(struct ask *ask)
{
        ask_fail(ask, ANSWER_REFUSED, "sqmgr-reader does not know this query");
}

void ask_fail_errno(struct ask *ask, int error)
{
        ask_fail(ask, ANSWER_LOST, "%s", error == -ENOMEM ? "out of memory" : "connection lost");
}

void ask_keep(struct ask *ask, void (*cancel)(struct ask *ask))
{
        ask->cancel = cancel;
        ask->next = ask->server->kept;
        ask->server->kept = ask;
}

void *ask_backend(const struct ask *ask)
{
        return ask->server->backend;
}

const struct reader_configuration *ask_configuration(const struct ask *ask)
{
        return &ask->server->configuration;
}

sd_event *reader_server_event(const struct reader_server *server)
{
        return server->event;
}

void reader_server_report(struct reader_server *server, const struct reader_report *report)
{
        struct codec_writer writer = {0};

        reader_report_write(&writer, report);
        reader_server_send(server, &writer);
        end_if_failed(server);
}

static void end_backend(struct reader_server *server)
{
        if (server->backend)
                server->ops->backend->end(server->backend);
        server->backend = NULL;
}

static int begin(struct reader_server *server, const struct query *query,
                 struct settings_tls_refusal *refusal)
{
        const struct reader_server_ops *ops = server->ops;
        int r = server->configured ? -EBADMSG : reader_configuration_read(query, &server->configuration);

        if (r < 0)
                return r;
        server->configured = true;
        r = ops->backend->begin(server, &server->configuration, refusal, &server->backend);
        if (r < 0)
                end_backend(server);
        return r;
}

/* Answers QUERY_CONFIGURE. */
static void configure(struct ask *ask)
{
        const struct reader_server *server = ask->server;
        struct settings_tls_refusal refusal = {.file = _SETTINGS_TLS_MAX};
        int r = begin(ask->server, ask_query(ask), &refusal);

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
        if (ask->answer.kind == QUERY_PING)
                ask_done(ask);
        else if (ask->answer.kind == QUERY_CONFIGURE)
                configure(ask);
        else if (!server->backend)
                ask_fail_unknown(ask);
        else
                server->ops->backend->ask(server->backend, ask);
        end_if_failed(server);
}

static void on_end(int error _unused_, void *userdata)
{
        const struct reader_server *server = userdata;

        server->ops->on_end(server->userdata);
}

int reader_server_new(sd_event *event, int fd, const struct reader_server_ops *ops, void *userdata,
                      struct reader_server **ret)
{
        static const struct message_socket_ops socket_ops = {.on_message = on_message, .on_end = on_end};
        static const struct message_socket_limits limits = {.receive = QUERY_BYTES_MAX, .send = SEND_MAX};
        struct reader_server *server = calloc(1, sizeof(*server));

        if (!server) {
                close_fd(fd);
                return -ENOMEM;
        }
        *server = (struct reader_server){
                .event = sd_event_ref(event),
                .ops = ops,
                .userdata = userdata,
        };
        int r = message_socket_new(event, fd, &limits, &socket_ops, server, &server->message_socket);
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
        /* End the kept queries before the backend is freed; reader_server_send() drops their answers. */
        for (struct ask *ask = server->kept; ask; ask = server->kept) {
                ask->cancel(ask);
                ask_fail_errno(ask, -ENOTCONN);
        }
        end_backend(server);
        message_socket_free(server->message_socket);
        reader_configuration_clear(&server->configuration);
        sd_event_unref(server->event);
        free(server);
        return NULL;
}
