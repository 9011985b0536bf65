/* SPDX-License-Identifier: MIT */
/* A socket to a server that speaks the Redis protocol; see the header.
 *
 * Of hiredis, only what formats commands and parses replies is used: its connections write without
 * MSG_NOSIGNAL, buffer replies of any size, and have no TLS before 1.0. */
#include "redis/connection.h"
#include "base/fd.h"
#include "io/clock.h"
#include "io/resolve.h"
#include "io/timer.h"
#include "redis/memory_share.h"
#include "redis/reply_limit.h"
#include "redis/tls.h"
#include <hiredis/hiredis.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>

/* A reply that keeps arriving may take this many times the timeout. Otherwise a large reply over a slow
 * line would be requested in vain again and again. */
#define SLOW_REPLY 10
/* Without commands for this time, the owner is reminded by on_idle(). */
#define IDLE_USEC (5 * USEC_PER_SEC)
/* Input goes first, unless it is a large reply: read what has arrived before declaring anything late. */
#define TIMER_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 10)
/* The priority of input while a large reply arrives, or while more has arrived than one wakeup reads: clients
 * of sqmgr are answered meanwhile. */
#define BULK_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 20)

#define WHY_SIZE 256

/* The most that one wakeup reads, so that no server keeps the loop busy. */
#define RECEIVE_BYTES    TLS_RECORD_MAX
#define OUTPUT_BYTES_MIN 512

enum connection_phase {
        PHASE_CLOSED,
        PHASE_FAILED, /* failed at once: on_lost() follows from the loop */
        PHASE_RESOLVING,
        PHASE_CONNECTING,
        PHASE_UP,
};

struct connection {
        sd_event *event;
        sd_event_source *timer;
        const struct connection_ops *ops;
        void *userdata;
        void (*decoding)(bool begins, void *userdata); /* NULL: none */
        void *decoding_userdata;
        usec_t timeout;

        struct endpoint endpoint;
        enum connection_phase phase;
        uint64_t openings; /* shows whether a callback closed or reopened the connection */
        usec_t deadline;   /* of this phase, until the phase is PHASE_UP */
        char failure[128]; /* of the last address tried */

        struct resolve *resolve; /* survives the opening that started it, see on_resolved() */
        char resolved[NI_MAXHOST];
        bool answer_is_late; /* the answer is for `resolved`, and unused so far */
        struct resolve_answer answer;
        unsigned next_address;

        int fd; /* -1: none */
        sd_event_source *io;
        struct tls_session *session; /* NULL: no TLS */
        redisReader *reader;
        struct reply_limit reply_limit; /* of the bytes that the reader got */
        struct memory_share input_share;
        struct {
                char *bytes;
                size_t length, sent;
                struct memory_share share; /* the size of bytes */
        } output;
        bool wants_write;
        bool is_bulk;         /* the input has BULK_PRIORITY */
        bool late;            /* no reply came in time */
        unsigned waiting;     /* commands without a reply */
        usec_t waiting_since; /* when the oldest was sent or the last reply came */
        usec_t received_at;   /* when any byte came, even of an incomplete reply */
        usec_t last_reply_at;

        unsigned entered; /* our calls on the stack */
        bool freed;
};

static void connection_destroy(struct connection *connection)
{
        sd_event_source_disable_unref(connection->timer);
        sd_event_unref(connection->event);
        free(connection);
}

DEFINE_ENTER_AND_LEAVE(struct connection, connection_enter, connection_leave, connection_destroy)

/* Returns when to act if nothing arrives. */
static usec_t next_deadline(const struct connection *connection)
{
        if (connection->phase != PHASE_UP)
                return connection->deadline;
        if (connection->waiting > 0)
                return MIN(usec_add(MAX(connection->waiting_since, connection->received_at),
                                    connection->timeout),
                           usec_add(connection->waiting_since, SLOW_REPLY * connection->timeout));
        return usec_add(connection->last_reply_at, IDLE_USEC);
}

static void arm_timer(struct connection *connection)
{
        timer_set(connection->timer, next_deadline(connection));
}

static void output_clear(struct connection *connection)
{
        free(connection->output.bytes);
        (void)memory_share_set(&connection->output.share, 0);
        connection->output = (typeof(connection->output)){0};
}

static void socket_close(struct connection *connection)
{
        connection->io = sd_event_source_disable_unref(connection->io);
        connection->session = tls_session_free(connection->session);
        connection->fd = close_fd(connection->fd);
        if (connection->reader)
                redisReaderFree(TAKE_PTR(connection->reader));
        connection->reply_limit = (struct reply_limit){0};
        (void)memory_share_set(&connection->input_share, 0);
        output_clear(connection);
}

static _printf_(2, 3) void connection_lost(struct connection *connection, const char *format, ...)
{
        char why[WHY_SIZE];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(why, sizeof(why), format, arguments);
        va_end(arguments);
        connection_close(connection);
        connection_enter(connection);
        connection->ops->on_lost(connection, why, connection->userdata);
        connection_leave(connection);
}

static void begin_phase(struct connection *connection, enum connection_phase phase)
{
        connection->phase = phase;
        connection->deadline = usec_add(clock_now(CLOCK_MONOTONIC), connection->timeout);
        arm_timer(connection);
}

static void set_wants_write(struct connection *connection, bool wants)
{
        if (connection->wants_write == wants)
                return;
        /* After a failure the next event retries, or the commands time out and the connection is replaced. */
        if (sd_event_source_set_io_events(connection->io, wants ? EPOLLIN | EPOLLOUT : EPOLLIN) >= 0)
                connection->wants_write = wants;
}

static void set_bulk(struct connection *connection, bool is_bulk)
{
        int64_t priority = is_bulk ? BULK_PRIORITY : SD_EVENT_PRIORITY_NORMAL;

        if (connection->is_bulk != is_bulk && sd_event_source_set_priority(connection->io, priority) >= 0)
                connection->is_bulk = is_bulk;
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata);

static int connect_address(const char *address, unsigned port)
{
        struct sockaddr_storage storage = {0};
        socklen_t length = resolve_numeric(address, port, &storage);

        if (length == 0)
                return -EINVAL;
        _cleanup_close_ int fd = socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        /* Without it, commands only wait for more of them. */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        if (connect(fd, (const struct sockaddr *)&storage, length) < 0 && errno != EINPROGRESS)
                return -errno;
        return TAKE_FD(fd);
}

/* Starts connecting. Returns false with connection->failure if that fails at once. */
static bool socket_open(struct connection *connection, const char *address)
{
        const struct endpoint *endpoint = &connection->endpoint;
        int r = endpoint->path ? fd_connect(endpoint->path, SOCK_NONBLOCK, USEC_INFINITY)
                               : connect_address(address, endpoint->port);

        if (r >= 0) {
                connection->fd = r;
                connection->reader = redisReaderCreate();
                connection->wants_write = true;
                connection->is_bulk = false;
                r = connection->reader ? sd_event_add_io(connection->event, &connection->io, connection->fd,
                                                         EPOLLOUT, on_io, connection)
                                       : -ENOMEM;
        }
        if (r >= 0)
                return true;
        snprintf(connection->failure, sizeof(connection->failure), "%s", strerror(-r));
        socket_close(connection);
        return false;
}

/* Tries the remaining addresses until one connection is in progress. Each has the whole timeout, so a
 * dead address does not use up the time of the next. Returns false if no address is left. */
static bool connect_next(struct connection *connection)
{
        socket_close(connection);
        while (connection->next_address < connection->answer.n_addresses) {
                if (socket_open(connection, connection->answer.addresses[connection->next_address++])) {
                        begin_phase(connection, PHASE_CONNECTING);
                        return true;
                }
        }
        return false;
}

static void connect_next_or_lose(struct connection *connection)
{
        if (!connect_next(connection))
                connection_lost(connection, "cannot connect: %s", connection->failure);
}

/* A late answer is kept for the next opening. Otherwise a slow name server would prevent connections
 * forever. */
static void on_resolved(const struct resolve_answer *answer, void *userdata)
{
        struct connection *connection = userdata;

        connection_enter(connection);
        connection->resolve = resolve_free(connection->resolve);
        connection->next_address = 0;
        if (connection->phase != PHASE_RESOLVING) {
                /* Do not replace the answer in use: it has a numeric address, a socket, or another name. */
                if (connection->phase == PHASE_CLOSED && answer->error == 0) {
                        connection->answer = *answer;
                        connection->answer_is_late = true;
                }
        } else if (answer->error != 0) {
                connection_lost(connection, "cannot resolve host '%s': %s", connection->endpoint.host,
                                gai_strerror(answer->error));
        } else {
                connection->answer = *answer;
                connect_next_or_lose(connection);
        }
        connection_leave(connection);
}

/* Returns false with connection->failure if that fails at once. */
static bool resolve_begin(struct connection *connection)
{
        const char *host = connection->endpoint.host;
        int r = 0;

        if (connection->resolve && strcmp(connection->resolved, host) != 0)
                connection->resolve = resolve_free(connection->resolve);
        snprintf(connection->resolved, sizeof(connection->resolved), "%s", host);
        if (!connection->resolve)
                r = resolve_start(connection->event, host, on_resolved, connection, &connection->resolve);
        if (r < 0) {
                snprintf(connection->failure, sizeof(connection->failure), "cannot resolve the host: %s",
                         strerror(-r));
                return false;
        }
        begin_phase(connection, PHASE_RESOLVING);
        return true;
}

void connection_open(struct connection *connection, const struct endpoint *endpoint)
{
        bool begun;

        connection_close(connection);
        connection->late = false;
        connection->endpoint = *endpoint;
        connection->next_address = 0;
        bool known = connection->answer_is_late && !endpoint->path &&
                     strcmp(connection->resolved, endpoint->host) == 0;
        connection->answer_is_late = false;
        if (!known)
                connection->answer = (struct resolve_answer){.n_addresses = 1};
        if (!known && !endpoint->path && !resolve_is_numeric(endpoint->host)) {
                begun = resolve_begin(connection);
        } else {
                if (!known && !endpoint->path)
                        snprintf(connection->answer.addresses[0], RESOLVE_ADDRESS_SIZE, "%s", endpoint->host);
                begun = connect_next(connection);
        }
        if (begun)
                return;
        /* The loop reports the failure: this function must not call back. */
        connection->phase = PHASE_FAILED;
        connection->deadline = 0;
        arm_timer(connection);
}

void connection_close(struct connection *connection)
{
        connection->openings++;
        connection->phase = PHASE_CLOSED;
        connection->waiting = 0;
        (void)sd_event_source_set_enabled(connection->timer, SD_EVENT_OFF);
        socket_close(connection);
}

bool connection_was_late(const struct connection *connection)
{
        return connection->late;
}

static int output_add(struct connection *connection, const char *bytes, size_t n)
{
        typeof(connection->output) *output = &connection->output;
        size_t size = output->share.bytes, unsent = output->length - output->sent;

        if (n > size - output->length) {
                size_t larger = MAX(MAX(2 * size, unsent + n), (size_t)OUTPUT_BYTES_MIN);

                if (!memory_share_set(&output->share, larger))
                        return -ENOMEM;
                char *moved = malloc(larger);
                if (!moved) {
                        (void)memory_share_set(&output->share, size);
                        return -ENOMEM;
                }
                if (unsent > 0)
                        memcpy(moved, output->bytes + output->sent, unsent);
                free(output->bytes);
                output->bytes = moved;
                output->length = unsent;
                output->sent = 0;
        }
        memcpy(output->bytes + output->length, bytes, n);
        output->length += n;
        return 0;
}

int connection_send(struct connection *connection, int argc, const char *const argv[], const size_t argvlen[])
{
        char *command = NULL;

        if (connection->phase != PHASE_UP)
                return -ENOTCONN;
        long long n = redisFormatCommandArgv(&command, argc, (const char **)argv, argvlen);
        if (n < 0)
                return -ENOMEM;
        int r = output_add(connection, command, (size_t)n);
        redisFreeCommand(command);
        if (r < 0)
                return r;
        set_wants_write(connection, true);
        if (connection->waiting++ == 0) {
                connection->waiting_since = clock_now(CLOCK_MONOTONIC);
                arm_timer(connection);
        }
        return 0;
}

static void socket_connected(struct connection *connection, int fd)
{
        socklen_t len = sizeof(int);
        int error = 0;

        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
                error = errno;
        if (error != 0) {
                snprintf(connection->failure, sizeof(connection->failure), "%s", strerror(error));
                connect_next_or_lose(connection);
                return;
        }
        if (connection->endpoint.tls) {
                int r = tls_session_new(connection->endpoint.tls, fd, connection->endpoint.host,
                                        &connection->session);
                if (r < 0) {
                        connection_lost(connection, "cannot start TLS: %s", strerror(-r));
                        return;
                }
        }
        connection->phase = PHASE_UP;
        connection->last_reply_at = clock_now(CLOCK_MONOTONIC);
        set_wants_write(connection, false);
        arm_timer(connection);
        connection->ops->on_up(connection, connection->userdata);
}

/* Returns true for `message CHANNEL TEXT`. */
static bool is_message(const redisReply *reply)
{
        if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3)
                return false;
        for (size_t i = 0; i < reply->elements; i++)
                if (reply->element[i]->type != REDIS_REPLY_STRING)
                        return false;
        return strcmp(reply->element[0]->str, "message") == 0;
}

/* more: further bytes followed this reply. */
static void take_reply(struct connection *connection, const redisReply *reply, bool more)
{
        const struct connection_ops *ops = connection->ops;

        connection->last_reply_at = clock_now(CLOCK_MONOTONIC);
        if (ops->on_message && is_message(reply)) {
                ops->on_message(connection, reply, connection->userdata);
                return;
        }
        if (connection->waiting == 0) {
                connection_lost(connection, "the server sent an unexpected reply. Check url");
                return;
        }
        if (connection->waiting == 1 && more && !ops->on_message) {
                connection_lost(connection, "the server sent more replies than expected. Check url");
                return;
        }
        connection->waiting--;
        connection->waiting_since = connection->last_reply_at;
        ops->on_reply(connection, reply, connection->userdata);
}

/* Handles a read or write that returned r. */
static void io_failed(struct connection *connection, ssize_t r)
{
        const char *why = r == 0                                ? "Server closed the connection"
                          : r == -EPROTO && connection->session ? tls_error(connection->session)
                                                                : strerror((int)-r);

        connection_lost(connection, "connection lost: %s", why);
}

/* Called as soon as the excess is known, before hiredis allocates memory for the reply. */
static void refuse_reply(struct connection *connection, enum reply_limit_outcome outcome)
{
        const char *what = reply_limit_explain(outcome);

        if (!connection->ops->on_oversized || !reply_limit_is_oversized(outcome)) {
                connection_lost(connection, "connection lost: the server sent %s", what);
                return;
        }
        connection_close(connection);
        connection->ops->on_oversized(connection, what, connection->userdata);
}

/* Parses further bytes, of n whole replies or of a part of one. Returns false if the connection is lost or
 * the owner has closed it. more: further bytes follow these. */
static bool parse(struct connection *connection, const char *bytes, size_t length, size_t n, bool more)
{
        uint64_t opening = connection->openings;

        if (redisReaderFeed(connection->reader, bytes, length) != REDIS_OK) {
                connection_lost(connection, "connection lost: out of memory");
                return false;
        }
        /* -fanalyzer: on_io() has entered, so the object survives all callbacks until on_io() leaves. */
        do {
                void *reply = NULL;

                /* The error of hiredis may contain bytes of the server. */
                if (redisReaderGetReply(connection->reader, &reply) != REDIS_OK || !reply != (n == 0)) {
                        if (reply)
                                freeReplyObject(reply);
                        connection_lost(connection,
                                        "connection lost: the server violates the Redis protocol");
                        return false;
                }
                if (!reply)
                        return true;
                take_reply(connection, reply, more || n > 1);
                freeReplyObject(reply);
        } while (connection->openings == opening && --n > 0);
        return connection->openings == opening;
}

/* Gives back the memory of the replies that were delivered: of those before, `held` bytes; `memory` bytes are
 * in use. The reader keeps a large buffer until it gets more bytes. Returns false if the connection is lost.
 */
static bool release_reply(struct connection *connection, size_t held, size_t memory)
{
        if (held > MEMORY_SHARE_FREE_BYTES) {
                redisReaderFree(connection->reader);
                connection->reader = redisReaderCreate();
                if (!connection->reader) {
                        connection_lost(connection, "connection lost: out of memory");
                        return false;
                }
        }
        (void)memory_share_set(&connection->input_share, memory);
        return true;
}

static void receive(struct connection *connection)
{
        struct reply_limit *limit = &connection->reply_limit;
        char bytes[RECEIVE_BYTES];
        ssize_t n = connection->session ? tls_read(connection->session, bytes, sizeof(bytes))
                                        : recv(connection->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

        if (n < 0 && !connection->session)
                n = -errno;
        if (n == -EAGAIN || n == -EINTR)
                return;
        if (n <= 0) {
                io_failed(connection, n);
                return;
        }
        connection->received_at = clock_now(CLOCK_MONOTONIC);
        enum reply_limit_outcome outcome = reply_limit_feed(limit, bytes, (size_t)n);
        size_t held = connection->input_share.bytes;
        size_t memory = outcome == REPLY_LIMIT_FITS ? reply_limit_memory(limit) : 0;
        bool has_room = memory_share_set(&connection->input_share, MAX(held, memory));
        set_bulk(connection, (size_t)n == sizeof(bytes) || memory > MEMORY_SHARE_FREE_BYTES);
        /* Deliver the replies that were complete before the refused one. The refused reply then belongs to
         * the oldest pending command. */
        size_t tail = limit->tail, whole = (size_t)n - tail;
        if (limit->ended > 0 && (!parse(connection, bytes, whole, limit->ended, tail > 0) ||
                                 !release_reply(connection, held, memory)))
                return;
        if (outcome != REPLY_LIMIT_FITS)
                refuse_reply(connection, outcome);
        else if (!has_room)
                connection_lost(connection, "connection lost: the reply does not fit into the 128 MiB that "
                                            "all connections share");
        else if (tail > 0 && connection->waiting == 0 && !connection->ops->on_message)
                connection_lost(connection, "the server sent an unexpected reply. Check url");
        else if (tail == 0 || parse(connection, bytes + whole, tail, 0, false))
                arm_timer(connection);
}

static void flush(struct connection *connection)
{
        typeof(connection->output) *output = &connection->output;
        const char *bytes = output->bytes + output->sent;
        size_t length = output->length - output->sent;
        ssize_t n = connection->session ? tls_write(connection->session, bytes, length)
                                        : send(connection->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && !connection->session)
                n = -errno;
        if (n > 0)
                output->sent += (size_t)n;
        else if (n != -EAGAIN && n != -EINTR)
                io_failed(connection, n);
        if (output->sent == output->length)
                output_clear(connection);
}

/* Whether to wait until the socket accepts bytes: TLS may have to read before it can write, and the other way
 * around. */
static bool wants_write(const struct connection *connection)
{
        bool unsent = connection->output.length > 0;

        if (!connection->session)
                return unsent;
        return unsent ? !tls_wants_read(connection->session) : tls_wants_write(connection->session);
}

static void set_decoding(struct connection *connection, bool begins)
{
        if (connection->decoding)
                connection->decoding(begins, connection->decoding_userdata);
}

static int on_io(_unused_ sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct connection *connection = userdata;
        uint64_t opening = connection->openings;

        connection_enter(connection);
        if (connection->phase == PHASE_CONNECTING) {
                socket_connected(connection, fd);
        } else {
                /* TLS may read while it writes. */
                set_decoding(connection, true);
                if (revents & (EPOLLIN | EPOLLHUP | EPOLLERR) || connection->session)
                        receive(connection);
                if (connection->openings == opening && connection->output.length > 0)
                        flush(connection);
                set_decoding(connection, false);
                if (connection->openings == opening)
                        set_wants_write(connection, wants_write(connection));
        }
        connection_leave(connection);
        return 0;
}

/* Handles a late reply to the oldest command, or a long time without commands. */
static void check_answers(struct connection *connection, usec_t due)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        if (now < next_deadline(connection)) {
                arm_timer(connection);
        } else if (connection->waiting == 0) {
                connection->last_reply_at = now;
                arm_timer(connection);
                connection->ops->on_idle(connection, connection->userdata);
        } else if (now > usec_add(due, connection->timeout / 2)) {
                /* The loop itself is late: the command may not have been written yet. */
                connection->waiting_since = now;
                arm_timer(connection);
        } else if (connection->session && !tls_is_up(connection->session)) {
                connection_lost(connection,
                                "no reply in time. Check that the server accepts TLS on this port");
        } else {
                connection->late = true;
                connection_lost(connection, "no reply in time");
        }
}

static int on_timer(_unused_ sd_event_source *source, uint64_t due, void *userdata)
{
        struct connection *connection = userdata;

        connection_enter(connection);
        switch (connection->phase) {
        case PHASE_CLOSED:
                break;
        case PHASE_FAILED:
                connection_lost(connection, "cannot connect: %s", connection->failure);
                break;
        case PHASE_RESOLVING:
                connection_lost(connection, "host '%s' was not resolved in time", connection->endpoint.host);
                break;
        case PHASE_CONNECTING:
                snprintf(connection->failure, sizeof(connection->failure), "no answer in time");
                connect_next_or_lose(connection);
                break;
        case PHASE_UP:
                check_answers(connection, due);
                break;
        }
        connection_leave(connection);
        return 0;
}

int connection_new(sd_event *event, const struct connection_ops *ops, usec_t timeout, void *userdata,
                   struct connection **ret)
{
        struct connection *connection = calloc(1, sizeof(*connection));

        if (!connection)
                return -ENOMEM;
        connection->event = sd_event_ref(event);
        connection->ops = ops;
        connection->userdata = userdata;
        connection->timeout = timeout;
        connection->fd = -1;
        int r = sd_event_add_time(event, &connection->timer, CLOCK_MONOTONIC, USEC_INFINITY, 1, on_timer,
                                  connection);
        if (r >= 0)
                r = sd_event_source_set_priority(connection->timer, TIMER_PRIORITY);
        if (r < 0) {
                connection_destroy(connection);
                return r;
        }
        *ret = connection;
        return 0;
}

void connection_on_decoding(struct connection *connection, void (*decoding)(bool begins, void *userdata),
                            void *userdata)
{
        connection->decoding = decoding;
        connection->decoding_userdata = userdata;
}

struct connection *connection_free(struct connection *connection)
{
        if (!connection || connection->freed)
                return NULL;
        connection->freed = true;
        connection_close(connection);
        connection->resolve = resolve_free(connection->resolve);
        connection_enter(connection);
        connection_leave(connection);
        return NULL;
}
