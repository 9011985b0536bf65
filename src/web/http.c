/* SPDX-License-Identifier: MIT */
/* The HTTP server: libmicrohttpd on sd-event, with limits on what a client can use. */
#include "web/http.h"
#include "web/listen.h"
#include "web/loop.h"
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

/* Memory of one connection: request header, response header, and the part of a stream being sent. */
#define CONNECTION_BYTES ((size_t)16 * 1024)
#define SWEEP_USEC       USEC_PER_SEC
#define ACCURACY_USEC    (100 * USEC_PER_MSEC)
/* Per iteration of the event loop. */
#define ACCEPTS_MAX 64

const struct http_limits http_default_limits = {
        .connections = 1024,
        .streams = 256,
        .wait_usec = 30 * USEC_PER_SEC,
        .answer_usec = 60 * USEC_PER_SEC,
};

struct http_request {
        struct http *http;
        TAILQ_ENTRY(http_request) instance_client;
        struct MHD_Connection *connection;
        int fd;          /* owned by libmicrohttpd */
        bool asked;      /* the request header was read */
        usec_t since;    /* last progress: request or response finished, or part of a stream read */
        bool put_off;    /* waiting, see http_wait() */
        bool answered;   /* or waiting */
        bool reads_head; /* HEAD: no body */
        bool ended;      /* shut down by end_connection() */
        struct viewer viewer;
};

struct http {
        sd_event *event;
        http_handler handler;
        void *userdata;
        struct http_limits limits;
        struct MHD_Daemon *daemon;
        sd_event_source *io, *run, *sweep;
        struct web_listener *listeners;
        size_t n_listeners;
        bool paused; /* the listeners are disabled: no free slot */
        const char *const *hosts;
        size_t n_hosts;
        TAILQ_HEAD(http_requests, http_request) connections; /* ordered by since */
        struct http_counts counts;
};

static void touch(struct http_request *request)
{
        request->since = loop_now(request->http->event, CLOCK_MONOTONIC);
        TAILQ_REMOVE(&request->http->connections, request, instance_client);
        TAILQ_INSERT_TAIL(&request->http->connections, request, instance_client);
}

static void end_connection(struct http_request *request)
{
        if (request->ended)
                return;
        request->ended = true;
        request->http->counts.refused++;
        (void)shutdown(request->fd, SHUT_RDWR);
}

static void set_listening(struct http *http, bool on)
{
        for (size_t i = 0; i < http->n_listeners; i++)
                (void)sd_event_source_set_enabled(http->listeners[i].io, on ? SD_EVENT_ON : SD_EVENT_OFF);
        http->paused = !on;
}

void http_run(struct http *http)
{
        MHD_UNSIGNED_LONG_LONG timeout;

        (void)MHD_run(http->daemon);
        /* libmicrohttpd has no timeouts configured: a timeout here means that work is pending. */
        bool again = MHD_get_timeout(http->daemon, &timeout) == MHD_YES;
        (void)sd_event_source_set_enabled(http->run, again ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static int on_io(sd_event_source *source _unused_, int fd _unused_, uint32_t revents _unused_, void *userdata)
{
        http_run(userdata);
        return 0;
}

static int on_run(sd_event_source *source _unused_, void *userdata)
{
        http_run(userdata);
        return 0;
}

static int on_sweep(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct http *http = userdata;
        struct http_request *request;

        TAILQ_FOREACH(request, &http->connections, instance_client) {
                usec_t limit = request->asked ? http->limits.answer_usec : http->limits.wait_usec;

                /* A viewer that has read everything waits for new messages, so it has no timeout. */
                if (!request->viewer.waits && usec_sub(usec, request->since) > limit)
                        end_connection(request);
        }
        /* File descriptors may be available again. */
        if (http->paused && http->counts.connections < http->limits.connections)
                set_listening(http, true);
        (void)sd_event_source_set_time(source, usec + SWEEP_USEC);
        (void)sd_event_source_set_enabled(
                source, !TAILQ_EMPTY(&http->connections) || http->paused ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
        return 0;
}

static void arm_sweep(struct http *http)
{
        int enabled = SD_EVENT_OFF;

        if (sd_event_source_get_enabled(http->sweep, &enabled) > 0)
                return;
        loop_arm(http->sweep, SWEEP_USEC);
}

/* Stops accepting and closes the connection that has kept sqmgr-web waiting for the longest time, for its
 * request or for reading a response. */
static void make_room(struct http *http)
{
        struct http_request *request;

        set_listening(http, false);
        arm_sweep(http);
        TAILQ_FOREACH(request, &http->connections, instance_client) {
                if (!request->viewer.stream && !request->ended && !request->put_off) {
                        end_connection(request);
                        return;
                }
        }
}

static struct http_request *request_of(struct MHD_Connection *connection)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

        return info ? info->socket_context : NULL;
}

static void begin_connection(struct http *http, struct MHD_Connection *connection, void **context)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct http_request *request = calloc(1, sizeof(*request));

        /* If memory is short, the connection ends at its first request. */
        *context = request;
        http->counts.connections++;
        if (!request)
                return;
        *request = (struct http_request){.http = http,
                                         .connection = connection,
                                         .fd = info ? info->connect_fd : -1,
                                         .since = loop_now(http->event, CLOCK_MONOTONIC)};
        TAILQ_INSERT_TAIL(&http->connections, request, instance_client);
        arm_sweep(http);
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
        struct http *http = cls;
        struct http_request *request = *context;

        if (code == MHD_CONNECTION_NOTIFY_STARTED) {
                begin_connection(http, connection, context);
                return;
        }
        if (request) {
                TAILQ_REMOVE(&http->connections, request, instance_client);
                free(request);
        }
        *context = NULL;
        http->counts.connections--;
        if (http->paused)
                set_listening(http, true);
}

static void on_completed(void *cls _unused_, struct MHD_Connection *connection, void **context _unused_,
                         enum MHD_RequestTerminationCode code _unused_)
{
        struct http_request *request = request_of(connection);

        if (!request)
                return;
        if (request->viewer.stream) {
                stream_leave(&request->viewer);
                request->http->counts.streams--;
        }
        request->viewer = (struct viewer){0};
        request->put_off = request->asked = false;
        touch(request);
}

/* libmicrohttpd continues the connection in its next run, which only this function schedules. */
static void resume(struct http_request *request)
{
        MHD_resume_connection(request->connection);
        (void)sd_event_source_set_enabled(request->http->run, SD_EVENT_ONESHOT);
}

const char *http_argument(const struct http_request *request, const char *name)
{
        return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *http_header(const struct http_request *request, const char *name)
{
        return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

static void drop_text(void *text)
{
        shared_drop(text);
}

/* Returns false if memory is short; the connection ends then. */
static bool queue(struct http_request *request, unsigned status, struct MHD_Response *response,
                  const struct http_answer *answer)
{
        /* NULL: not in this response. */
        const char *const headers[][2] = {
                {"X-Content-Type-Options", "nosniff"},
                {"X-Frame-Options", "DENY"},
                {"Referrer-Policy", "no-referrer"},
                {"Cross-Origin-Resource-Policy", "same-origin"},
                {"Content-Type", answer->type},
                {"Content-Security-Policy", answer->csp ?: "default-src 'none'; frame-ancestors 'none'"},
                {"Cache-Control", answer->cache ?: "no-store"},
                {"Allow", status == MHD_HTTP_METHOD_NOT_ALLOWED ? "GET, HEAD" : NULL},
                {"Retry-After", status == MHD_HTTP_SERVICE_UNAVAILABLE ? "5" : NULL},
        };
        bool good = response;

        for (size_t i = 0; good && i < ELEMENTSOF(headers); i++)
                good = !headers[i][1] ||
                       MHD_add_response_header(response, headers[i][0], headers[i][1]) == MHD_YES;
        good = good && MHD_queue_response(request->connection, status, response) == MHD_YES;
        if (response)
                MHD_destroy_response(response);
        request->answered = good;
        return good;
}

static struct MHD_Response *response_of(const struct http_answer *answer)
{
        struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
                answer->text->size, answer->text->data, drop_text, answer->text);
        if (response)
                shared_hold(answer->text);
        return response;
}

void http_answer(struct http_request *request, const struct http_answer *answer)
{
        (void)queue(request, answer->status, response_of(answer), answer);
}

void http_answer_sentence(struct http_request *request, unsigned status, const char *sentence)
{
        char *line;
        int size = asprintf(&line, "%s\n", sentence);
        _cleanup_shared_ struct shared *text = size < 0 ? NULL : shared_take(line, (size_t)size);

        if (text)
                http_answer(request, &(struct http_answer){.status = status,
                                                           .type = "text/plain; charset=utf-8",
                                                           .text = text});
}

static ssize_t read_stream(void *cls, uint64_t position _unused_, char *data, size_t size)
{
        struct http_request *request = cls;
        size_t n = stream_read(&request->viewer, data, size);

        touch(request);
        if (n == 0)
                MHD_suspend_connection(request->connection);
        return (ssize_t)n;
}

void http_wake(struct viewer *viewer)
{
        struct http_request *request = viewer->userdata;

        /* The time limit for reading the new message starts now. */
        touch(request);
        resume(request);
}

void http_stream(struct http_request *request, struct stream *stream, struct shared *first)
{
        static const struct http_answer answer = {.type = "text/event-stream"};
        static char end = '\0';
        static struct shared nothing = {.holders = 1, .data = &end};
        struct http *http = request->http;

        if (request->reads_head) {
                http_answer(request, &(struct http_answer){
                                             .status = MHD_HTTP_OK, .type = answer.type, .text = &nothing});
                return;
        }
        if (http->counts.streams >= http->limits.streams) {
                http_answer_sentence(request, MHD_HTTP_SERVICE_UNAVAILABLE,
                                     "there are as many streams as sqmgr-web serves: try again later");
                return;
        }
        struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, CONNECTION_BYTES,
                                                                          read_stream, request, NULL);
        if (!queue(request, MHD_HTTP_OK, response, &answer))
                return;
        http->counts.streams++;
        request->viewer = (struct viewer){.userdata = request};
        stream_join(stream, &request->viewer, first);
        touch(request);
}

void http_wait(struct http_request *request)
{
        MHD_suspend_connection(request->connection);
        request->put_off = request->answered = true;
}

void http_resume(struct http *http)
{
        struct http_request *request;

        TAILQ_FOREACH(request, &http->connections, instance_client) {
                if (!request->put_off)
                        continue;
                request->put_off = false;
                resume(request);
        }
}

struct http_counts http_count(const struct http *http)
{
        return http->counts;
}

static enum MHD_Result count_host(void *cls, enum MHD_ValueKind kind _unused_, const char *key,
                                  const char *value _unused_)
{
        *(unsigned *)cls += strcasecmp(key, "Host") == 0;
        return MHD_YES;
}

static bool is_own_address(const struct http_request *request, const char *header)
{
        struct address address = {.size = sizeof(address.path)};
        char host[ADDRESS_TEXT_MAX];

        if (getsockname(request->fd, &address.any, &address.size) < 0)
                return false;
        return address_host_is(header, address_format_host(&address, host, sizeof(host)));
}

/* Prevents DNS rebinding: a foreign page could let its name resolve to this machine and read from it through
 * a local browser. */
static bool host_is_allowed(const struct http_request *request, const char *header)
{
        const struct http *http = request->http;

        for (size_t i = 0; i < http->n_hosts; i++)
                if (address_host_is(header, http->hosts[i]))
                        return true;
        return address_host_is(header, "localhost") || is_own_address(request, header);
}

/* Returns true if the request is valid. Otherwise an error was sent. */
static bool check_request(struct http_request *request, const char *method)
{
        const char *host = http_header(request, "Host");
        unsigned n_hosts = 0;

        (void)MHD_get_connection_values(request->connection, MHD_HEADER_KIND, count_host, &n_hosts);
        if (n_hosts > 1) {
                http_answer_sentence(request, MHD_HTTP_BAD_REQUEST, "there is more than one Host");
                return false;
        }
        if (host && !host_is_allowed(request, host)) {
                http_answer_sentence(request, MHD_HTTP_MISDIRECTED_REQUEST,
                                     "sqmgr-web is not known by this name: give it with --host");
                return false;
        }
        request->reads_head = strcmp(method, "HEAD") == 0;
        if (!request->reads_head && strcmp(method, "GET") != 0) {
                http_answer_sentence(request, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are answered");
                return false;
        }
        return true;
}

static bool has_body(const struct http_request *request)
{
        const char *length = http_header(request, "Content-Length");

        return http_header(request, "Transfer-Encoding") || (length && strspn(length, "0") != strlen(length));
}

static enum MHD_Result on_request(void *cls _unused_, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version _unused_,
                                  const char *upload _unused_, size_t *upload_size, void **context)
{
        struct http_request *request = request_of(connection);

        if (!request)
                return MHD_NO;
        *upload_size = 0;
        request->answered = false;
        if (!*context) {
                /* libmicrohttpd closes a connection that is answered at this first call. Requests with a body
                 * are answered here, because the body is not read. */
                *context = request;
                request->http->counts.requests++;
                request->asked = true;
                touch(request);
                if (check_request(request, method)) {
                        if (!has_body(request))
                                return MHD_YES;
                        http_answer_sentence(request, MHD_HTTP_CONTENT_TOO_LARGE, "no body is read");
                }
        } else {
                request->http->handler(request->http->userdata, request, url);
        }
        return request->answered ? MHD_YES : MHD_NO;
}

/* Leaves paths and arguments escaped. No valid path or argument contains escapes, and an escaped NUL cannot
 * truncate a text. */
static size_t keep_escaped(void *cls _unused_, struct MHD_Connection *connection _unused_, char *text)
{
        return strlen(text);
}

int http_add(struct http *http, int fd, const struct sockaddr *peer, socklen_t peer_size)
{
        return MHD_add_connection(http->daemon, fd, peer, peer_size) == MHD_YES ? 0 : -errno;
}

static void accept_some(struct http *http, int listen_fd)
{
        for (unsigned i = 0; i < ACCEPTS_MAX; i++) {
                struct address peer = {.size = sizeof(peer.path)};

                if (http->counts.connections >= http->limits.connections) {
                        /* Only in the first iteration another client is known to be waiting. */
                        if (i == 0)
                                make_room(http);
                        return;
                }
                int fd = accept4(listen_fd, &peer.any, &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
                if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
                        make_room(http);
                if (fd < 0)
                        return;
                (void)http_add(http, fd, &peer.any, peer.size);
                http_run(http);
        }
}

static int on_connect(sd_event_source *source _unused_, int fd, uint32_t revents _unused_, void *userdata)
{
        accept_some(userdata, fd);
        return 0;
}

void http_allow_hosts(struct http *http, const char *const *names, size_t n)
{
        http->hosts = names;
        http->n_hosts = n;
}

int http_listen(struct http *http, const struct address *address, char *error, size_t error_size)
{
        struct web_listener *listeners =
                reallocarray(http->listeners, http->n_listeners + 1, sizeof(*http->listeners));

        if (!listeners) {
                snprintf(error, error_size, "there is too little memory");
                return -ENOMEM;
        }
        http->listeners = listeners;
        struct web_listener *listener = &listeners[http->n_listeners];
        int r = web_listener_open(listener, address, error, error_size);
        if (r < 0)
                return r;
        http->n_listeners++;
        r = sd_event_add_io(http->event, &listener->io, listener->fd, EPOLLIN, on_connect, http);
        if (r < 0)
                snprintf(error, error_size, "cannot wait for connections: %s", strerrordesc_np(-r));
        return r;
}

static int start(struct http *http)
{
        struct MHD_OptionItem options[] = {
                {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, http},
                {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_completed, http},
                {MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)keep_escaped, NULL},
                {MHD_OPTION_END, 0, NULL},
        };

        http->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME,
                                        0, NULL, NULL, on_request, http, MHD_OPTION_CONNECTION_LIMIT,
                                        http->limits.connections + 1, MHD_OPTION_CONNECTION_TIMEOUT, 0U,
                                        MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_BYTES,
                                        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
                                        MHD_OPTION_ARRAY, options, MHD_OPTION_END);
        if (!http->daemon)
                return -ENOMEM;
        const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        if (!info || info->epoll_fd < 0)
                return -EOPNOTSUPP;
        int r = sd_event_add_io(http->event, &http->io, info->epoll_fd, EPOLLIN, on_io, http);
        if (r >= 0)
                r = sd_event_add_defer(http->event, &http->run, on_run, http);
        if (r >= 0)
                r = sd_event_source_set_enabled(http->run, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_time_relative(http->event, &http->sweep, CLOCK_MONOTONIC, SWEEP_USEC,
                                               ACCURACY_USEC, on_sweep, http);
        return r < 0 ? r : 0;
}

int http_new(struct http **ret, sd_event *event, const struct http_limits *limits, http_handler handler,
             void *userdata)
{
        struct http *http = calloc(1, sizeof(*http));

        if (!http)
                return -ENOMEM;
        *http = (struct http){.event = event, .handler = handler, .userdata = userdata, .limits = *limits};
        TAILQ_INIT(&http->connections);
        int r = start(http);
        *ret = r < 0 ? http_free(http) : http;
        return r;
}

struct http *http_free(struct http *http)
{
        if (!http)
                return NULL;
        for (size_t i = 0; i < http->n_listeners; i++)
                web_listener_close(&http->listeners[i]);
        http->n_listeners = 0;
        /* No connection may be suspended when the daemon stops. */
        struct http_request *request;
        TAILQ_FOREACH(request, &http->connections, instance_client) {
                if (request->put_off || request->viewer.waits)
                        MHD_resume_connection(request->connection);
                request->put_off = request->viewer.waits = false;
        }
        if (http->daemon)
                MHD_stop_daemon(http->daemon);
        sd_event_source_disable_unref(http->io);
        sd_event_source_disable_unref(http->run);
        sd_event_source_disable_unref(http->sweep);
        free(http->listeners);
        free(http);
        return NULL;
}
