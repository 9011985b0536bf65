/* SPDX-License-Identifier: MIT */
/* A socket to a server that speaks the Redis protocol; see the header.
 *
 * Uses the non-blocking contexts of hiredis, not the asynchronous ones. The latter abort the process by an
 * assertion on unexpected input, and have no timeouts before 1.0. */
#include "redis/connection.h"
#include "base/macro.h"
#include "io/clock.h"
#include "io/resolve.h"
#include "redis/reply_limit.h"
#include "redis/tls.h"
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* A reply that keeps arriving may take this many times the timeout. Otherwise a large reply over a slow
 * line would be requested in vain again and again. */
#define SLOW_REPLY 10
/* Without commands for this time, the owner is reminded by on_idle(). */
#define IDLE_USEC (5 * USEC_PER_SEC)
/* Input goes first: read what has arrived before declaring anything late. */
#define TIMER_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 10)

#define WHY_SIZE 256

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

        redisContext *context;
        struct reply_limit reply_limit; /* of the bytes that the context has received */
        sd_event_source *io;
        struct tls_session *session; /* of the context; NULL: no TLS */
        bool unsent;                 /* some commands are not written yet */
        bool wants_write;
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

/* Enclose all calls of callbacks: the object stays until the outermost call has returned. */
static void connection_enter(struct connection *connection)
{
        connection->entered++;
}

static void connection_leave(struct connection *connection)
{
        /* -fanalyzer: each leave follows an enter, so the object stays until the last leave. */
        if (--connection->entered == 0 && connection->freed)
                connection_destroy(connection);
}

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
        /* Neither call fails for our own event source. */
        (void)sd_event_source_set_time(connection->timer, next_deadline(connection));
        (void)sd_event_source_set_enabled(connection->timer, SD_EVENT_ONESHOT);
}

static void context_close(struct connection *connection)
{
        connection->io = sd_event_source_disable_unref(connection->io);
        connection->session = NULL;
        connection->unsent = false;
        if (connection->context)
                redisFree(TAKE_PTR(connection->context));
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

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata);

/* Starts connecting. Returns false with connection->failure if that fails at once. */
static bool context_open(struct connection *connection, const char *address)
{
        const struct endpoint *endpoint = &connection->endpoint;
        redisContext *context = endpoint->path ? redisConnectUnixNonBlock(endpoint->path)
                                               : redisConnectNonBlock(address, (int)endpoint->port);
        const char *why = context ? context->errstr : "out of memory";

        connection->context = context;
        connection->reply_limit = (struct reply_limit){0};
        connection->wants_write = true;
        if (context && !context->err) {
                int r = fcntl(context->fd, F_SETFD, FD_CLOEXEC) < 0 ? -errno : 0;
                if (r >= 0)
                        r = sd_event_add_io(connection->event, &connection->io, context->fd, EPOLLOUT, on_io,
                                            connection);
                if (r >= 0)
                        return true;
                why = strerror(-r);
        }
        snprintf(connection->failure, sizeof(connection->failure), "%s", why);
        context_close(connection);
        return false;
}

/* Tries the remaining addresses until one connection is in progress. Each has the whole timeout, so a
 * dead address does not use up the time of the next. Returns false if no address is left. */
static bool connect_next(struct connection *connection)
{
        context_close(connection);
        while (connection->next_address < connection->answer.n_addresses) {
                if (context_open(connection, connection->answer.addresses[connection->next_address++])) {
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
        context_close(connection);
}

bool connection_was_late(const struct connection *connection)
{
        return connection->late;
}

int connection_send(struct connection *connection, int argc, const char *const argv[], const size_t argvlen[])
{
        if (connection->phase != PHASE_UP)
                return -ENOTCONN;
        if (redisAppendCommandArgv(connection->context, argc, (const char **)argv, argvlen) != REDIS_OK)
                return -ENOMEM;
        connection->unsent = true;
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
                int r = tls_start(connection->endpoint.tls, connection->context, connection->endpoint.host,
                                  &connection->session);
                if (r < 0) {
                        connection_lost(connection, "cannot start TLS: %s",
                                        connection->context->err ? connection->context->errstr
                                                                 : strerror(-r));
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

static void take_reply(struct connection *connection, const redisReply *reply)
{
        const struct connection_ops *ops = connection->ops;
        const redisReader *reader = connection->context->reader;

        connection->last_reply_at = clock_now(CLOCK_MONOTONIC);
        if (ops->on_message && is_message(reply)) {
                ops->on_message(connection, reply, connection->userdata);
                return;
        }
        if (connection->waiting == 0) {
                connection_lost(connection, "the server sent an unexpected reply. Check url");
                return;
        }
        if (connection->waiting == 1 && reader->pos < reader->len && !ops->on_message) {
                connection_lost(connection, "the server sent more replies than expected. Check url");
                return;
        }
        connection->waiting--;
        connection->waiting_since = connection->last_reply_at;
        ops->on_reply(connection, reply, connection->userdata);
}

/* Handles a failed read or write. */
static void io_failed(struct connection *connection)
{
        const char *why = connection->session ? tls_error(connection->session) : NULL;

        connection_lost(connection, "connection lost: %s", why ? why : connection->context->errstr);
}

/* Reads at most one buffer of hiredis. Returns the outcome of reply_limit_feed(), or a negative number if the
 * connection is lost. */
static int receive_bytes(struct connection *connection)
{
        redisContext *context = connection->context;
        size_t before = context->reader->len;

        if (redisBufferRead(context) != REDIS_OK) {
                io_failed(connection);
                return -EIO;
        }
        /* New bytes follow the old ones, which only leave the buffer with a whole reply. */
        size_t n = context->reader->len - before;
        if (n > 0)
                connection->received_at = clock_now(CLOCK_MONOTONIC);
        return reply_limit_feed(&connection->reply_limit, context->reader->buf + before, n);
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

static void receive(struct connection *connection)
{
        uint64_t opening = connection->openings;
        redisContext *context = connection->context;

        int outcome = receive_bytes(connection);
        if (outcome < 0)
                return;
        /* Deliver the replies that were complete before the refused one. The refused reply then belongs to
         * the oldest pending command. */
        size_t left = outcome == REPLY_LIMIT_FITS ? SIZE_MAX : connection->reply_limit.ended;
        /* -fanalyzer: on_io() has entered, so the object survives all callbacks until on_io() leaves. */
        while (connection->openings == opening && left-- > 0) {
                void *reply = NULL;

                if (redisGetReplyFromReader(context, &reply) != REDIS_OK) {
                        /* The error of hiredis may contain bytes of the server. */
                        connection_lost(connection,
                                        "connection lost: the server violates the Redis protocol");
                        return;
                }
                if (!reply)
                        break;
                take_reply(connection, reply);
                freeReplyObject(reply);
        }
        if (connection->openings != opening)
                return;
        if (outcome != REPLY_LIMIT_FITS)
                refuse_reply(connection, (enum reply_limit_outcome)outcome);
        else if (connection->waiting == 0 && !connection->ops->on_message &&
                 context->reader->pos < context->reader->len)
                connection_lost(connection, "the server sent an unexpected reply. Check url");
        else
                arm_timer(connection);
}

static void flush(struct connection *connection)
{
        int done = 0;

        if (redisBufferWrite(connection->context, &done) != REDIS_OK) {
                io_failed(connection);
                return;
        }
        connection->unsent = !done;
        set_wants_write(connection,
                        !done && !(connection->session && tls_waits_for_input(connection->session)));
}

static int on_io(_unused_ sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct connection *connection = userdata;
        uint64_t opening = connection->openings;

        connection_enter(connection);
        if (connection->phase == PHASE_CONNECTING) {
                socket_connected(connection, fd);
        } else {
                if (revents & (EPOLLIN | EPOLLHUP | EPOLLERR))
                        receive(connection);
                while (connection->openings == opening && connection->session &&
                       tls_has_input(connection->session))
                        receive(connection);
                if (connection->openings == opening && (connection->unsent || revents & EPOLLOUT))
                        flush(connection);
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
        int r = sd_event_add_time(event, &connection->timer, CLOCK_MONOTONIC, 0, 1, on_timer, connection);
        if (r >= 0)
                r = sd_event_source_set_priority(connection->timer, TIMER_PRIORITY);
        if (r >= 0)
                r = sd_event_source_set_enabled(connection->timer, SD_EVENT_OFF);
        if (r < 0) {
                connection_destroy(connection);
                return r;
        }
        *ret = connection;
        return 0;
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
