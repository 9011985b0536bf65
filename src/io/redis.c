/* SPDX-License-Identifier: MIT */
/* One connection to one Redis, kept up: attempts, deadlines, log-in, and the queue of commands. What hiredis
 * wants from the loop stands at the end of the file. */
#include "io/redis.h"
#include "core/redis_url.h"
#include "core/sidekiq.h"
#include "io/clock.h"
#include "io/resolve.h"
#include <fcntl.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#define BACKOFF_MIN_USEC (250 * USEC_PER_MSEC)
#define BACKOFF_MAX_USEC (5 * USEC_PER_SEC)
/* A connection that held this long was a good one: the next failure starts from the shortest wait. */
#define BACKOFF_RESET_USEC (10 * USEC_PER_SEC)
/* Nobody asks it anything: ask ourselves, that a silent death is seen. */
#define PING_USEC (5 * USEC_PER_SEC)
/* Deadlines give way to input: what has arrived is read before anything is called late. */
#define TIMER_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 10)

#define ERROR_SIZE 256

enum phase {
        PHASE_WAITING,    /* for the next attempt */
        PHASE_RESOLVING,  /* the name */
        PHASE_CONNECTING, /* the socket */
        PHASE_LOGIN,      /* AUTH, SELECT, probe */
        PHASE_UP,
};

struct command {
        struct command *next;
        redis_reply_fn callback; /* NULL: nobody listens */
        void *userdata;
        usec_t sent_at;
};

struct redis {
        sd_event *event;
        sd_event_source *timer;
        redis_state_fn on_state;
        void *userdata;

        struct redis_url url;
        char *url_text;
        char *username;
        char *password;
        char *probe_key;
        usec_t connect_timeout;
        usec_t command_timeout;

        enum phase phase;
        enum redis_state state;
        char error[ERROR_SIZE]; /* "": none */
        usec_t deadline;        /* of the attempt */
        usec_t up_at;
        usec_t rtt_usec;
        uint64_t connection_count;
        unsigned failures; /* in a row, for the backoff */

        struct resolve *resolve;
        struct resolve_answer answer;
        unsigned next_address;

        redisAsyncContext *context;
        sd_event_source *io;
        uint32_t io_events;
        bool connected;           /* hiredis says so */
        char lost[128];           /* why the socket was given up; "": it was not */
        struct command *commands; /* without their reply, the oldest first */
        struct command **commands_end;
        usec_t last_reply_at;

        unsigned entered; /* calls of ours on the stack */
        bool freed;
};

static int context_open(struct redis *redis, const char *address);
static void context_close(struct redis *redis);
static void attempt_failed(struct redis *redis, const char *format, ...) _printf_(2, 3);

const char *redis_state_name(enum redis_state state)
{
        static const char *const names[] = {
                [REDIS_STATE_CONNECTING] = "connecting",
                [REDIS_STATE_CONNECTED] = "connected",
                [REDIS_STATE_DOWN] = "down",
        };
        static_assert(ELEMENTSOF(names) == _REDIS_STATE_MAX, "every state has a name");
        return names[state];
}

static void redis_destroy(struct redis *redis)
{
        sd_event_source_disable_unref(redis->timer);
        sd_event_unref(redis->event);
        redis_url_clear(&redis->url);
        free(redis->url_text);
        free(redis->username);
        if (redis->password)
                explicit_bzero(redis->password, strlen(redis->password));
        free(redis->password);
        free(redis->probe_key);
        free(redis);
}

/* Around everything that calls back: the object stays until the last of them has returned. */
static void redis_enter(struct redis *redis)
{
        redis->entered++;
}

static void redis_leave(struct redis *redis)
{
        if (--redis->entered == 0 && redis->freed)
                redis_destroy(redis);
}

/* When must something be done, if nothing arrives? */
static usec_t next_deadline(const struct redis *redis)
{
        if (redis->phase != PHASE_UP && redis->phase != PHASE_LOGIN)
                return redis->deadline;
        if (redis->commands)
                return usec_add(redis->commands->sent_at, redis->command_timeout);
        return usec_add(redis->last_reply_at, PING_USEC);
}

static void arm_timer(struct redis *redis)
{
        /* Neither call fails with a source of ours. */
        (void)sd_event_source_set_time(redis->timer, next_deadline(redis));
        (void)sd_event_source_set_enabled(redis->timer, SD_EVENT_ONESHOT);
}

static void set_state(struct redis *redis, enum redis_state state, const char *error)
{
        if (redis->state == state && strcmp(redis->error, error) == 0)
                return;
        redis->state = state;
        snprintf(redis->error, sizeof(redis->error), "%s", error);
        if (redis->on_state && !redis->freed)
                redis->on_state(redis, state, redis_error(redis), redis->userdata);
}

/* Takes the oldest command off the queue and calls it back. */
static void command_finish(struct redis *redis, const redisReply *reply)
{
        struct command *command = redis->commands;

        redis->commands = command->next;
        if (!redis->commands)
                redis->commands_end = &redis->commands;
        if (command->callback)
                command->callback(redis, reply, command->userdata);
        free(command);
}

/* Half of it fixed, half of it random, that many clients of one server do not come back all at once. */
static usec_t backoff_usec(unsigned failures)
{
        usec_t delay = BACKOFF_MIN_USEC;
        uint32_t random = 0;

        for (unsigned i = 1; i < failures && delay < BACKOFF_MAX_USEC; i++)
                delay *= 2;
        delay = MIN(delay, BACKOFF_MAX_USEC);
        (void)getrandom(&random, sizeof(random), GRND_NONBLOCK);
        return delay / 2 + delay / 2 * (random % 1024) / 1024;
}

/* The attempt or the connection is over: all that waits fails, and the next attempt is due after a while. */
static void attempt_failed(struct redis *redis, const char *format, ...)
{
        char error[ERROR_SIZE];
        usec_t now = clock_now(CLOCK_MONOTONIC);
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(error, sizeof(error), format, arguments);
        va_end(arguments);
        for (char *c = error; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                        *c = '?';

        context_close(redis);
        if (redis->phase == PHASE_UP && now - redis->up_at >= BACKOFF_RESET_USEC)
                redis->failures = 0;
        redis->failures++;
        redis->phase = PHASE_WAITING;
        redis->deadline = now + backoff_usec(redis->failures);
        redis->rtt_usec = 0;
        arm_timer(redis);

        redis_enter(redis);
        while (redis->commands)
                command_finish(redis, NULL);
        set_state(redis, REDIS_STATE_DOWN, error);
        redis_leave(redis);
}

static bool reply_is_error(const redisReply *reply, const char *code)
{
        size_t len = strlen(code);

        return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, code, len) == 0 &&
               (reply->str[len] == ' ' || reply->str[len] == '\0');
}

/* Errors that no command is to blame for: the server, or our standing with it, is not fit for use. Returns
 * what to do about it, or NULL. */
static const char *unfit_remedy(const redisReply *reply)
{
        static const struct {
                const char *code, *remedy;
        } errors[] = {
                {"LOADING", "it is reading its data from disk, wait until it has"},
                {"MASTERDOWN", "it is a replica that has lost its master"},
                {"NOAUTH", "it asks for a password, set password or password_file in [redis]"},
                {"NOPERM", "its ACL does not let this user read Sidekiq's keys, see username in [redis]"},
                {"READONLY", "it is a replica, set url to the master"},
        };

        for (size_t i = 0; i < ELEMENTSOF(errors); i++)
                if (reply_is_error(reply, errors[i].code))
                        return errors[i].remedy;
        return NULL;
}

static int command_queue(struct redis *redis, redis_reply_fn callback, void *userdata, int argc,
                         const char *const argv[], const size_t argvlen[]);

/* The probe reads as the looks will. Its answer is the last one of the log-in. */
static void on_probe(struct redis *redis, const redisReply *reply, _unused_ void *userdata)
{
        if (!reply || redis->phase != PHASE_LOGIN)
                return;
        if (reply->type == REDIS_REPLY_ERROR) {
                attempt_failed(redis, "the server refuses to be read: %.160s", reply->str);
                return;
        }
        if (reply->type != REDIS_REPLY_INTEGER) {
                attempt_failed(redis, "what answers there is not a Redis: check url");
                return;
        }
        redis->phase = PHASE_UP;
        redis->up_at = clock_now(CLOCK_MONOTONIC);
        redis->connection_count++;
        set_state(redis, REDIS_STATE_CONNECTED, "");
}

static void on_select(struct redis *redis, const redisReply *reply, _unused_ void *userdata)
{
        if (reply && reply->type == REDIS_REPLY_ERROR)
                attempt_failed(redis, "database %u cannot be used: %.160s", redis->url.db, reply->str);
}

/* The text of the error is not told: some servers repeat the arguments in it. */
static void on_auth(struct redis *redis, const redisReply *reply, _unused_ void *userdata)
{
        if (!reply || reply->type != REDIS_REPLY_ERROR)
                return;
        if (strstr(reply->str, "without any password configured") || strstr(reply->str, "no password is set"))
                attempt_failed(redis, "the server has no password, but one is set: remove it from [redis]");
        else if (reply_is_error(reply, "ERR"))
                attempt_failed(redis, "the server does not take AUTH with %s: check username in [redis]",
                               redis->username ? "a user name" : "a password alone");
        else
                attempt_failed(redis, "the server refuses user or password: check username and password in "
                                      "[redis]");
}

/* Log-in, choice of the database and probe go out together. */
static void login(struct redis *redis)
{
        int r = 0;

        redis->phase = PHASE_LOGIN;
        redis->last_reply_at = clock_now(CLOCK_MONOTONIC);
        if (redis->password && redis->username) {
                const char *argv[] = {"AUTH", redis->username, redis->password};
                r = command_queue(redis, on_auth, NULL, ELEMENTSOF(argv), argv, NULL);
        } else if (redis->password) {
                const char *argv[] = {"AUTH", redis->password};
                r = command_queue(redis, on_auth, NULL, ELEMENTSOF(argv), argv, NULL);
        }
        if (r == 0 && redis->url.db != 0) {
                char db[16];
                snprintf(db, sizeof(db), "%u", redis->url.db);
                const char *argv[] = {"SELECT", db};
                r = command_queue(redis, on_select, NULL, ELEMENTSOF(argv), argv, NULL);
        }
        if (r == 0) {
                const char *argv[] = {"EXISTS", redis->probe_key};
                r = command_queue(redis, on_probe, NULL, ELEMENTSOF(argv), argv, NULL);
        }
        if (r < 0)
                attempt_failed(redis, "cannot log in: %s", strerror(-r));
}

/* Tries the addresses that are left, until one is under way. Each has connect_timeout for itself: a dead one
 * must not use up the time of those behind it. */
static void connect_next(struct redis *redis)
{
        while (redis->next_address < redis->answer.n_addresses) {
                if (context_open(redis, redis->answer.addresses[redis->next_address++]) == 0) {
                        redis->phase = PHASE_CONNECTING;
                        redis->deadline = usec_add(clock_now(CLOCK_MONOTONIC), redis->connect_timeout);
                        arm_timer(redis);
                        return;
                }
        }
        attempt_failed(redis, "cannot connect: %s", redis->lost);
}

static void on_resolved(const struct resolve_answer *answer, void *userdata)
{
        struct redis *redis = userdata;

        redis_enter(redis);
        redis->resolve = resolve_free(redis->resolve);
        if (answer->error != 0) {
                if (redis->phase == PHASE_RESOLVING)
                        attempt_failed(redis, "cannot find host '%s': %s", redis->url.host,
                                       gai_strerror(answer->error));
        } else {
                /* A late answer is as good: a slow name server would otherwise keep us away for ever. */
                redis->answer = *answer;
                redis->next_address = 0;
                connect_next(redis);
        }
        redis_leave(redis);
}

static void attempt_begin(struct redis *redis)
{
        redis->next_address = 0;
        redis->answer = (struct resolve_answer){.n_addresses = 1};
        if (redis->url.path) {
                connect_next(redis);
                return;
        }
        if (resolve_is_numeric(redis->url.host)) {
                snprintf(redis->answer.addresses[0], RESOLVE_ADDRESS_SIZE, "%s", redis->url.host);
                connect_next(redis);
                return;
        }

        redis->phase = PHASE_RESOLVING;
        redis->deadline = usec_add(clock_now(CLOCK_MONOTONIC), redis->connect_timeout);
        int r = redis->resolve
                        ? 0
                        : resolve_start(redis->event, redis->url.host, on_resolved, redis, &redis->resolve);
        if (r < 0)
                attempt_failed(redis, "cannot look up host '%s': %s", redis->url.host, strerror(-r));
        else
                arm_timer(redis);
}

/* The oldest command is late, or nobody has asked for long. */
static void check_connection(struct redis *redis, usec_t due)
{
        static const char *const ping[] = {"PING"};
        usec_t now = clock_now(CLOCK_MONOTONIC);

        if (now < next_deadline(redis)) {
                arm_timer(redis);
        } else if (!redis->commands) {
                if (command_queue(redis, NULL, NULL, ELEMENTSOF(ping), ping, NULL) < 0)
                        attempt_failed(redis, "cannot ask: out of memory");
        } else if (now > usec_add(due, redis->command_timeout / 2)) {
                /* It is we who are late: the command may not even have gone out. */
                redis->commands->sent_at = now;
                arm_timer(redis);
        } else {
                attempt_failed(redis, "no reply within command_timeout");
        }
}

static int on_timer(_unused_ sd_event_source *source, uint64_t due, void *userdata)
{
        struct redis *redis = userdata;

        redis_enter(redis);
        switch (redis->phase) {
        case PHASE_WAITING:
                attempt_begin(redis);
                break;
        case PHASE_RESOLVING:
                attempt_failed(redis, "host '%s' was not found within connect_timeout", redis->url.host);
                break;
        case PHASE_CONNECTING:
                context_close(redis);
                snprintf(redis->lost, sizeof(redis->lost), "no answer within connect_timeout");
                connect_next(redis);
                break;
        case PHASE_LOGIN:
        case PHASE_UP:
                check_connection(redis, due);
                break;
        }
        redis_leave(redis);
        return 0;
}

/* The URL's user and password, or the settings'. */
static int copy_credentials(struct redis *redis, const struct redis_settings *settings)
{
        const char *password = redis->url.password, *username = redis->url.username;

        if (!password) {
                password = settings->password;
                username = username ? username : settings->username;
        }
        if (!password || !*password)
                return 0;
        redis->password = strdup(password);
        redis->username = username && *username ? strdup(username) : NULL;
        return redis->password && (redis->username || !username || !*username) ? 0 : -ENOMEM;
}

int redis_new(sd_event *event, const char *url, const struct redis_settings *settings,
              redis_state_fn on_state, void *userdata, struct redis **ret)
{
        struct redis *redis = calloc(1, sizeof(*redis));
        if (!redis)
                return -ENOMEM;
        redis->event = sd_event_ref(event);
        redis->on_state = on_state;
        redis->userdata = userdata;
        redis->connect_timeout = settings->connect_timeout;
        redis->command_timeout = settings->command_timeout;
        redis->commands_end = &redis->commands;

        url = url ? url : settings->url;
        int r = redis_url_parse(url, &redis->url, NULL);
        if (r >= 0 && redis->url.tls)
                r = -EPROTONOSUPPORT;
        if (r >= 0)
                r = copy_credentials(redis, settings);
        if (r >= 0) {
                redis->url_text = redis_url_redact(url);
                redis->probe_key = sidekiq_key(settings->namespace, SIDEKIQ_PROCESSES, NULL);
                if (!redis->url_text || !redis->probe_key)
                        r = -ENOMEM;
        }
        if (r >= 0)
                r = sd_event_add_time(event, &redis->timer, CLOCK_MONOTONIC, 0, 1, on_timer, redis);
        if (r >= 0)
                r = sd_event_source_set_priority(redis->timer, TIMER_PRIORITY);
        if (r < 0) {
                redis_destroy(redis);
                return r;
        }
        *ret = redis;
        return 0;
}

struct redis *redis_free(struct redis *redis)
{
        if (!redis || redis->freed)
                return NULL;
        redis->freed = true;
        redis->phase = PHASE_WAITING;
        (void)sd_event_source_set_enabled(redis->timer, SD_EVENT_OFF);
        context_close(redis);
        redis->resolve = resolve_free(redis->resolve);

        redis_enter(redis);
        while (redis->commands)
                command_finish(redis, NULL);
        redis_leave(redis);
        return NULL;
}

int redis_command(struct redis *redis, redis_reply_fn callback, void *userdata, int argc,
                  const char *const argv[], const size_t argvlen[])
{
        if (redis->phase != PHASE_UP)
                return -ENOTCONN;
        return command_queue(redis, callback, userdata, argc, argv, argvlen);
}

enum redis_state redis_state(const struct redis *redis)
{
        return redis->state;
}

const char *redis_error(const struct redis *redis)
{
        return redis->error[0] ? redis->error : NULL;
}

const char *redis_url_text(const struct redis *redis)
{
        return redis->url_text;
}

usec_t redis_rtt_usec(const struct redis *redis)
{
        return redis->rtt_usec;
}

uint64_t redis_connection_count(const struct redis *redis)
{
        return redis->connection_count;
}

/* What hiredis calls, and what calls it. Three of its traps are dealt with here: up to 0.14 it must not be
 * freed from within its connect callback, so that one takes notes only; a reply to nothing ends the process
 * by an assertion, so none is let through; and its sockets are inherited by children unless told otherwise.
 */

static void on_reply(redisAsyncContext *context, void *data, _unused_ void *privdata)
{
        struct redis *redis = context->data;
        const redisReply *reply = data;

        /* Without a reply hiredis is closing: what waits is called back from attempt_failed(). */
        if (!redis || !reply)
                return;

        const redisReader *reader = context->c.reader;
        if (!redis->commands->next && reader->pos < reader->len) {
                attempt_failed(redis, "the server sends more than it was asked for: check url");
                return;
        }
        redis->last_reply_at = clock_now(CLOCK_MONOTONIC);
        redis->rtt_usec = MAX(usec_sub(redis->last_reply_at, redis->commands->sent_at), 1U);

        const char *remedy = unfit_remedy(reply);
        if (remedy)
                attempt_failed(redis, "the server says %.*s: %s", (int)strcspn(reply->str, " "), reply->str,
                               remedy);
        else
                command_finish(redis, reply);
}

static int command_queue(struct redis *redis, redis_reply_fn callback, void *userdata, int argc,
                         const char *const argv[], const size_t argvlen[])
{
        struct command *command = malloc(sizeof(*command));
        if (!command)
                return -ENOMEM;
        *command = (struct command){
                .callback = callback,
                .userdata = userdata,
                .sent_at = clock_now(CLOCK_MONOTONIC),
        };
        if (redisAsyncCommandArgv(redis->context, on_reply, NULL, argc, (const char **)argv, argvlen) !=
            REDIS_OK) {
                free(command);
                return -ENOMEM;
        }
        *redis->commands_end = command;
        redis->commands_end = &command->next;
        if (redis->commands == command)
                arm_timer(redis);
        return 0;
}

static void on_connect(const redisAsyncContext *context, int status)
{
        struct redis *redis = context->data;

        if (!redis)
                return;
        if (status == REDIS_OK) {
                redis->connected = true;
                return;
        }
        snprintf(redis->lost, sizeof(redis->lost), "%s", context->c.errstr);
        redis->context = NULL; /* hiredis frees it next */
}

static void on_disconnect(const redisAsyncContext *context, _unused_ int status)
{
        struct redis *redis = context->data;

        if (!redis)
                return;
        snprintf(redis->lost, sizeof(redis->lost), "%s",
                 context->c.err ? context->c.errstr : "closed by the server");
        redis->context = NULL;
}

static void io_set_events(struct redis *redis, uint32_t events)
{
        if (redis->io_events == events || !redis->io)
                return;
        redis->io_events = events;
        /* Should it fail, then commands are late, and that is dealt with. */
        (void)sd_event_source_set_io_events(redis->io, events);
}

static void io_add_read(void *userdata)
{
        struct redis *redis = userdata;
        io_set_events(redis, redis->io_events | EPOLLIN);
}

static void io_del_read(void *userdata)
{
        struct redis *redis = userdata;
        io_set_events(redis, redis->io_events & ~(uint32_t)EPOLLIN);
}

static void io_add_write(void *userdata)
{
        struct redis *redis = userdata;
        io_set_events(redis, redis->io_events | EPOLLOUT);
}

static void io_del_write(void *userdata)
{
        struct redis *redis = userdata;
        io_set_events(redis, redis->io_events & ~(uint32_t)EPOLLOUT);
}

static void io_cleanup(void *userdata)
{
        struct redis *redis = userdata;
        redis->io = sd_event_source_disable_unref(redis->io);
        redis->connected = false;
}

/* There is input, though nothing was asked: the server has closed, or it is none. */
static void read_unasked(struct redis *redis, int fd)
{
        char byte;
        ssize_t n = recv(fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n > 0)
                attempt_failed(redis, "the server sends what it was not asked for: check url");
        else
                attempt_failed(redis, "connection lost: %s",
                               n < 0 ? strerror(errno) : "closed by the server");
}

static int on_io(_unused_ sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct redis *redis = userdata;
        bool was_connected = redis->connected;

        redis_enter(redis);
        if (revents & (EPOLLHUP | EPOLLERR))
                revents |= EPOLLIN | EPOLLOUT;
        if (was_connected && (revents & EPOLLIN)) {
                if (redis->commands)
                        redisAsyncHandleRead(redis->context);
                else
                        read_unasked(redis, fd);
        }
        if (redis->context && (!was_connected || (revents & EPOLLOUT)))
                redisAsyncHandleWrite(redis->context);

        if (redis->lost[0] && redis->phase == PHASE_CONNECTING)
                connect_next(redis);
        else if (redis->lost[0] && redis->phase > PHASE_CONNECTING)
                attempt_failed(redis, "connection lost: %s", redis->lost);
        else if (!was_connected && redis->connected)
                login(redis);
        redis_leave(redis);
        return 0;
}

/* Begins to connect. Where that fails at once, redis->lost says why. */
static int context_open(struct redis *redis, const char *address)
{
        redis->lost[0] = '\0';
        redisAsyncContext *context = redis->url.path ? redisAsyncConnectUnix(redis->url.path)
                                                     : redisAsyncConnect(address, (int)redis->url.port);
        if (!context || context->err) {
                snprintf(redis->lost, sizeof(redis->lost), "%s", context ? context->errstr : "out of memory");
                if (context)
                        redisAsyncFree(context);
                return -EIO;
        }

        redis->io_events = 0;
        int r = sd_event_add_io(redis->event, &redis->io, context->c.fd, 0, on_io, redis);
        if (r < 0 || fcntl(context->c.fd, F_SETFD, FD_CLOEXEC) < 0) {
                snprintf(redis->lost, sizeof(redis->lost), "%s", strerror(r < 0 ? -r : errno));
                redis->io = sd_event_source_disable_unref(redis->io);
                redisAsyncFree(context);
                return -EIO;
        }
        redis->context = context;
        context->data = redis;
        context->ev.data = redis;
        context->ev.addRead = io_add_read;
        context->ev.delRead = io_del_read;
        context->ev.addWrite = io_add_write;
        context->ev.delWrite = io_del_write;
        context->ev.cleanup = io_cleanup;
        (void)redisAsyncSetDisconnectCallback(context, on_disconnect);
        (void)redisAsyncSetConnectCallback(context, on_connect);
        return 0;
}

/* Lets go of the connection. In a callback of hiredis it frees the context later, and calls nobody back any
 * more. */
static void context_close(struct redis *redis)
{
        redisAsyncContext *context = TAKE_PTR(redis->context);

        redis->io = sd_event_source_disable_unref(redis->io);
        redis->connected = false;
        if (!context)
                return;
        context->data = NULL;
        memset(&context->ev, 0, sizeof(context->ev));
        redisAsyncFree(context);
}
