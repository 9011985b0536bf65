/* SPDX-License-Identifier: MIT */
/* The HTTP server: libmicrohttpd on sd-event, with limits on what a client can use. */
#include "web/http.h"
#include "web/loop.h"
#include <microhttpd.h>
#include <string.h>
#include <sys/stat.h>

/* Memory of one connection: request header, response header, and the part of a stream being sent. */
#define CONNECTION_BYTES ((size_t)16 * 1024)
#define SWEEP_USEC       USEC_PER_SEC
#define ACCURACY_USEC    (100 * USEC_PER_MSEC)
/* Per iteration of the event loop. */
#define ACCEPTS_MAX 64U
/* Memory of the kernel for each connection. The kernel doubles this number; its own limit is 4 MiB. */
#define SEND_BUFFER_BYTES (128 * 1024)
/* The user and the group of sqmgr-web may connect. */
#define SOCKET_MODE 0660

const struct http_limits http_default_limits = {
        .connections = 1024,
        .streams = 256,
        .wait_usec = 30 * USEC_PER_SEC,
        .answer_usec = 60 * USEC_PER_SEC,
        .message_usec = 30 * USEC_PER_SEC,
        .unread_bytes = (size_t)64 << 20,
};

struct listener {
        int fd;
        struct address address;
        sd_event_source *io;
};

/* A connection and its current request. */
struct http_request {
        struct http *http;
        TAILQ_ENTRY(http_request) entry;
        struct MHD_Connection *connection;
        int fd;              /* owned by libmicrohttpd */
        uint64_t peer;       /* the same for all connections from an address, for IPv6 from a /64 */
        bool asked;          /* the request header was read */
        usec_t since;        /* last progress: connection opened, request read, or response finished */
        bool put_off;        /* waits for http_resume(), see http_wait() */
        bool answered;       /* a response was queued, or http_wait() was called */
        bool reads_head;     /* the request is HEAD: the response has no body */
        bool ended;          /* shut down; the library has yet to close it */
        struct shared *text; /* response that the client reads; NULL: none, or that of a stream */
        usec_t text_at;      /* since when the client may read text or the message of the stream */
        struct viewer viewer;
};

struct http_clients {
        struct http_limits limits;
        TAILQ_HEAD(http_requests, http_request) list; /* ordered by since */
        struct http_counts counts;
        unsigned sweeps; /* number of calls of sweep() */
};

struct http {
        sd_event *event;
        http_handler handler;
        void *userdata;
        struct MHD_Daemon *daemon;
        sd_event_source *io, *run, *sweep;
        struct listener *listeners;
        size_t n_listeners;
        bool paused; /* the listeners are disabled: no free slot */
        const char *const *hosts;
        size_t n_hosts;
        struct http_clients clients;
};

/* libmicrohttpd continues the connection in its next run, which only this function schedules. */
static void resume(struct http_request *request)
{
        MHD_resume_connection(request->connection);
        loop_arm(request->http->run, 0);
}

/* Returns the same number for all connections from an address. Sockets at a path have one address. */
static uint64_t peer_of(const struct sockaddr *address)
{
        uint64_t peer = 0;

        if (address && address->sa_family == AF_INET) {
                const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;

                peer = in->sin_addr.s_addr;
        } else if (address && address->sa_family == AF_INET6) {
                const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;

                memcpy(&peer, &in6->sin6_addr, sizeof(peer));
        }
        return peer;
}

/* Marks progress of the request. */
static void touch(struct http_request *request)
{
        struct http *http = request->http;

        request->since = loop_now(http->event, CLOCK_MONOTONIC);
        TAILQ_REMOVE(&http->clients.list, request, entry);
        TAILQ_INSERT_TAIL(&http->clients.list, request, entry);
}

/* The stream has ended. Does nothing if the request has no stream. */
static void leave_stream(struct http_clients *clients, struct http_request *request)
{
        if (request->viewer.stream) {
                stream_leave(&request->viewer);
                clients->counts.streams--;
        }
        request->viewer = (struct viewer){0};
}

/* Ends the connection. The request stays in the list until the library closes the connection. */
static void end_client(struct http_clients *clients, struct http_request *request)
{
        bool suspended = request->put_off || request->viewer.waits;

        if (request->ended)
                return;
        request->ended = true;
        clients->counts.refused++;
        request->put_off = false;
        leave_stream(clients, request);
        (void)shutdown(request->fd, SHUT_RDWR);
        if (suspended)
                resume(request);
}

/* Continues the waiting requests of http_wait(). */
static void stop_waiting(struct http_clients *clients)
{
        struct http_request *request;

        TAILQ_FOREACH(request, &clients->list, entry) {
                if (!request->put_off)
                        continue;
                request->put_off = false;
                resume(request);
        }
}

/* Returns how many streams there are from the address of the request. */
static unsigned count_streams(const struct http_clients *clients, const struct http_request *request)
{
        const struct http_request *each;
        unsigned n = 0;

        TAILQ_FOREACH(each, &clients->list, entry) {
                n += each->viewer.stream && each->peer == request->peer;
        }
        return n;
}

/* Returns the oldest of the streams whose address has the most. Returns NULL if there is no stream. */
static struct http_request *find_stream(const struct http_clients *clients)
{
        struct http_request *request, *found = NULL;
        unsigned most = 0;

        TAILQ_FOREACH(request, &clients->list, entry) {
                if (!request->viewer.stream || (found && request->peer == found->peer))
                        continue;
                unsigned n = count_streams(clients, request);
                if (n > most) {
                        most = n;
                        found = request;
                }
        }
        return found;
}

/* Ends one connection: the one that has kept the server waiting for the longest time. If all are streams or
 * wait for the server: a stream. If there is no stream: the latest. */
static void end_one(struct http_clients *clients)
{
        struct http_request *request, *found = NULL, *last = NULL;

        TAILQ_FOREACH(request, &clients->list, entry) {
                if (request->ended || request->viewer.stream)
                        continue;
                if (request->put_off)
                        last = request;
                else if (!found)
                        found = request;
        }
        found = found ?: find_stream(clients) ?: last;
        if (found)
                end_client(clients, found);
}

/* Ends streams until there is a place for one more: the oldest of those whose address has the most. */
static void make_room_for_stream(struct http_clients *clients)
{
        while (clients->counts.streams >= clients->limits.streams) {
                struct http_request *found = find_stream(clients);

                if (!found)
                        return;
                end_client(clients, found);
        }
}

static bool takes_too_long(const struct http_clients *clients, const struct http_request *request, usec_t now)
{
        const struct http_limits *limits = &clients->limits;

        /* A viewer that has read everything waits for new messages, so it has no timeout. */
        if (request->viewer.stream)
                return !request->viewer.waits && usec_sub(now, request->text_at) > limits->message_usec;
        return usec_sub(now, request->since) > (request->asked ? limits->answer_usec : limits->wait_usec);
}

/* Returns the text that the client reads, or NULL. */
static struct shared *text_of(const struct http_request *request)
{
        return request->ended ? NULL : request->viewer.stream ? request->viewer.text : request->text;
}

/* Returns the size of all texts that clients read, each counted once. */
static size_t count_unread(struct http_clients *clients)
{
        const struct http_request *request;
        size_t bytes = 0;

        clients->sweeps++;
        TAILQ_FOREACH(request, &clients->list, entry) {
                struct shared *text = text_of(request);

                if (!text || text->counted == clients->sweeps)
                        continue;
                text->counted = clients->sweeps;
                bytes += text->size;
        }
        return bytes;
}

/* Returns the text that a client has been reading for the longest time. Returns NULL if there is none, or
 * only a single text. */
static const struct shared *find_oldest_text(const struct http_clients *clients)
{
        const struct http_request *request, *oldest = NULL;
        bool several = false;

        TAILQ_FOREACH(request, &clients->list, entry) {
                const struct shared *text = text_of(request);

                if (!text)
                        continue;
                several |= oldest && text_of(oldest) != text;
                if (!oldest || request->text_at < oldest->text_at)
                        oldest = request;
        }
        return several ? text_of(oldest) : NULL;
}

static void end_readers(struct http_clients *clients, const struct shared *text)
{
        struct http_request *request;

        TAILQ_FOREACH(request, &clients->list, entry) {
                if (text_of(request) == text)
                        end_client(clients, request);
        }
}

/* Ends connections that take too long, and those that read the oldest texts if these need too much memory. */
static void sweep(struct http_clients *clients, usec_t now)
{
        struct http_request *request;
        const struct shared *text;

        TAILQ_FOREACH(request, &clients->list, entry) {
                if (takes_too_long(clients, request, now))
                        end_client(clients, request);
        }
        /* Slow clients keep texts that newer ones have superseded. */
        for (size_t bytes = count_unread(clients); bytes > clients->limits.unread_bytes;) {
                text = find_oldest_text(clients);
                if (!text)
                        return;
                bytes -= text->size;
                end_readers(clients, text);
        }
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
        if (again)
                loop_arm(http->run, 0);
        else
                (void)sd_event_source_set_enabled(http->run, SD_EVENT_OFF);
}

static int on_io(sd_event_source *source _unused_, int fd _unused_, uint32_t revents _unused_, void *userdata)
{
        http_run(userdata);
        return 0;
}

static int on_run(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        http_run(userdata);
        return 0;
}

static int on_sweep(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct http *http = userdata;
        struct http_clients *clients = &http->clients;

        sweep(clients, usec);
        /* File descriptors may be available again. */
        if (http->paused && clients->counts.connections < clients->limits.connections)
                set_listening(http, true);
        (void)sd_event_source_set_time(source, usec + SWEEP_USEC);
        (void)sd_event_source_set_enabled(
                source, !TAILQ_EMPTY(&clients->list) || http->paused ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
        return 0;
}

static void arm_sweep(struct http *http)
{
        int enabled = SD_EVENT_OFF;

        if (sd_event_source_get_enabled(http->sweep, &enabled) > 0)
                return;
        loop_arm(http->sweep, SWEEP_USEC);
}

/* Stops accepting until a connection has been closed. */
static void make_room(struct http *http)
{
        set_listening(http, false);
        arm_sweep(http);
        end_one(&http->clients);
}

static struct http_request *request_of(struct MHD_Connection *connection)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

        return info ? info->socket_context : NULL;
}

static void begin_connection(struct http *http, struct MHD_Connection *connection, void **context)
{
        /* libmicrohttpd 1.0 returns the same memory from each call. */
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        int fd = info ? info->connect_fd : -1;
        info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        const struct sockaddr *peer = info ? info->client_addr : NULL;
        struct http_request *request = calloc(1, sizeof(*request));

        /* If memory is short, the connection ends at its first request. */
        *context = request;
        http->clients.counts.connections++;
        if (!request)
                return;
        *request = (struct http_request){.http = http,
                                         .connection = connection,
                                         .fd = fd,
                                         .peer = peer_of(peer),
                                         .since = loop_now(http->event, CLOCK_MONOTONIC)};
        TAILQ_INSERT_TAIL(&http->clients.list, request, entry);
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
                TAILQ_REMOVE(&http->clients.list, request, entry);
                shared_drop(request->text);
                free(request);
        }
        *context = NULL;
        http->clients.counts.connections--;
        if (http->paused)
                set_listening(http, true);
}

static void on_completed(void *cls _unused_, struct MHD_Connection *connection, void **context _unused_,
                         enum MHD_RequestTerminationCode code _unused_)
{
        struct http_request *request = request_of(connection);

        if (!request)
                return;
        leave_stream(&request->http->clients, request);
        request->text = shared_drop(request->text);
        request->put_off = request->asked = false;
        touch(request);
}

bool http_is_head(const struct http_request *request)
{
        return request->reads_head;
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
        if (!queue(request, answer->status, response_of(answer), answer))
                return;
        shared_drop(request->text);
        request->text = shared_hold(answer->text);
        request->text_at = loop_now(request->http->event, CLOCK_MONOTONIC);
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

        if (!request->viewer.stream)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        /* The client has read the message before: the time for the next one starts now. */
        if (!request->viewer.text)
                request->text_at = loop_now(request->http->event, CLOCK_MONOTONIC);
        size_t n = stream_read(&request->viewer, data, size);
        if (n == 0)
                MHD_suspend_connection(request->connection);
        return (ssize_t)n;
}

void http_wake(struct viewer *viewer)
{
        struct http_request *request = viewer->userdata;

        request->text_at = loop_now(request->http->event, CLOCK_MONOTONIC);
        resume(request);
}

struct viewer *http_stream(struct http_request *request, struct stream *stream)
{
        static char end = '\0';
        static struct shared nothing = {.holders = 1, .data = &end};
        const struct http_answer answer = {
                .status = MHD_HTTP_OK, .type = "text/event-stream", .text = &nothing};
        struct http *http = request->http;

        if (request->reads_head) {
                http_answer(request, &answer);
                return NULL;
        }
        make_room_for_stream(&http->clients);
        struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, CONNECTION_BYTES,
                                                                          read_stream, request, NULL);
        if (!queue(request, answer.status, response, &answer))
                return NULL;
        http->clients.counts.streams++;
        request->viewer = (struct viewer){.userdata = request};
        request->text_at = loop_now(http->event, CLOCK_MONOTONIC);
        stream_join(stream, &request->viewer);
        return &request->viewer;
}

void http_wait(struct http_request *request)
{
        MHD_suspend_connection(request->connection);
        request->put_off = request->answered = true;
}

void http_resume(struct http *http)
{
        stop_waiting(&http->clients);
}

struct http_counts http_count(const struct http *http)
{
        return http->clients.counts;
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
                http_answer_sentence(request, MHD_HTTP_BAD_REQUEST, "more than one Host header");
                return false;
        }
        if (host && !host_is_allowed(request, host)) {
                http_answer_sentence(request, MHD_HTTP_MISDIRECTED_REQUEST,
                                     "sqmgr-web does not answer to this name. Allow it with --host");
                return false;
        }
        request->reads_head = strcmp(method, "HEAD") == 0;
        if (!request->reads_head && strcmp(method, "GET") != 0) {
                http_answer_sentence(request, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are supported");
                return false;
        }
        return true;
}

static bool has_body(const struct http_request *request)
{
        const char *length = http_header(request, "Content-Length");

        return http_header(request, "Transfer-Encoding") || (length && strspn(length, "0") != strlen(length));
}

/* Answers an invalid request with an error. For a valid one the library calls on_request() again. */
static enum MHD_Result begin_request(struct http_request *request, const char *method)
{
        request->http->clients.counts.requests++;
        request->asked = true;
        touch(request);
        if (check_request(request, method)) {
                if (!has_body(request))
                        return MHD_YES;
                http_answer_sentence(request, MHD_HTTP_CONTENT_TOO_LARGE,
                                     "a request with a body is not supported");
        }
        return request->answered ? MHD_YES : MHD_NO;
}

static enum MHD_Result on_request(void *cls _unused_, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version _unused_,
                                  const char *upload _unused_, size_t *upload_size, void **context)
{
        struct http_request *request = request_of(connection);

        if (!request || request->ended)
                return MHD_NO;
        *upload_size = 0;
        request->answered = false;
        if (!*context) {
                /* libmicrohttpd closes a connection that is answered at this first call. Requests with a body
                 * are answered here, because the body is not read. */
                *context = request;
                return begin_request(request, method);
        }
        request->http->handler(request->http->userdata, request, url);
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
        const int send_buffer = SEND_BUFFER_BYTES;
        unsigned limit = http->clients.limits.connections;
        unsigned room = limit - MIN(limit, http->clients.counts.connections);

        if (room == 0)
                make_room(http);
        /* libmicrohttpd 1.0 begins, and so counts, these connections in its next run only. */
        for (unsigned i = 0; i < MIN(room, ACCEPTS_MAX); i++) {
                struct address peer = {.size = sizeof(peer.path)};
                int fd = accept4(listen_fd, &peer.any, &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC);

                if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
                        make_room(http);
                if (fd < 0)
                        return;
                (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof(send_buffer));
                (void)http_add(http, fd, &peer.any, peer.size);
        }
}

static int on_connect(sd_event_source *source _unused_, int fd, uint32_t revents _unused_, void *userdata)
{
        accept_some(userdata, fd);
        http_run(userdata);
        return 0;
}

void http_allow_hosts(struct http *http, const char *const *names, size_t n)
{
        http->hosts = names;
        http->n_hosts = n;
}

/* Removes a socket on which no process listens. Returns 0 or -errno. */
static int clear_path(const struct address *address)
{
        const char *path = address->path.sun_path;
        struct stat status;

        if (lstat(path, &status) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (!S_ISSOCK(status.st_mode))
                return -EEXIST;
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (connect(fd, &address->any, address->size) == 0 || errno != ECONNREFUSED)
                return -EADDRINUSE;
        return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

/* Returns a listening socket, TCP or Unix at a path, or -errno. */
static int open_socket(const struct address *address)
{
        const int one = 1;
        int family = address->any.sa_family, r = family == AF_UNIX ? clear_path(address) : 0;

        if (r < 0)
                return r;
        _cleanup_close_ int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        /* Connections of an earlier sqmgr-web may still occupy the port. */
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (family == AF_INET6)
                (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
        mode_t mask = umask(0777 & ~SOCKET_MODE);
        r = bind(fd, &address->any, address->size) < 0 || listen(fd, SOMAXCONN) < 0 ? -errno : 0;
        (void)umask(mask);
        return r < 0 ? r : TAKE_FD(fd);
}

int http_listen(struct http *http, const struct address *address, char *error, size_t error_size)
{
        char text[ADDRESS_TEXT_MAX];

        if (!ARRAY_RESIZE(http->listeners, http->n_listeners + 1)) {
                snprintf(error, error_size, "not enough memory");
                return -ENOMEM;
        }
        int fd = open_socket(address);
        if (fd < 0) {
                snprintf(error, error_size, "cannot listen on %s: %s",
                         address_format(address, text, sizeof(text)), strerrordesc_np(-fd));
                return fd;
        }
        struct listener *listener = &http->listeners[http->n_listeners++];
        *listener = (struct listener){.fd = fd, .address = *address};
        int r = sd_event_add_io(http->event, &listener->io, listener->fd, EPOLLIN, on_connect, http);
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
                                        http->clients.limits.connections + 1, MHD_OPTION_CONNECTION_TIMEOUT,
                                        0U, MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_BYTES,
                                        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
                                        MHD_OPTION_ARRAY, options, MHD_OPTION_END);
        if (!http->daemon)
                return -ENOMEM;
        const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        if (!info || info->epoll_fd < 0)
                return -EOPNOTSUPP;
        int r = sd_event_add_io(http->event, &http->io, info->epoll_fd, EPOLLIN, on_io, http);
        if (r >= 0)
                /* Not a deferred source, which sd-event dispatches before all others if it is due again at
                 * once. */
                r = sd_event_add_time_relative(http->event, &http->run, CLOCK_MONOTONIC, 0, 1, on_run, http);
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
        *http = (struct http){
                .event = event, .handler = handler, .userdata = userdata, .clients = {.limits = *limits}};
        TAILQ_INIT(&http->clients.list);
        int r = start(http);
        *ret = r < 0 ? http_free(http) : http;
        return r;
}

static void close_listener(struct listener *listener)
{
        sd_event_source_disable_unref(listener->io);
        close_fd(listener->fd);
        if (listener->address.any.sa_family == AF_UNIX)
                (void)unlink(listener->address.path.sun_path);
}

struct http *http_free(struct http *http)
{
        if (!http)
                return NULL;
        for (size_t i = 0; i < http->n_listeners; i++)
                close_listener(&http->listeners[i]);
        http->n_listeners = 0;
        /* No connection may be suspended when the daemon stops. */
        struct http_request *request;
        TAILQ_FOREACH(request, &http->clients.list, entry) {
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
