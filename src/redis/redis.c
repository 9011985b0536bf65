/* SPDX-License-Identifier: MIT */
/* A connection to a Redis: reconnects, logs in, queues commands, and with Sentinels chooses the server. */
#include "redis/redis.h"
#include "base/parse.h"
#include "base/printable.h"
#include "io/clock.h"
#include "io/timer.h"
#include "redis/connection.h"
#include "redis/oversized.h"
#include "redis/sentinel.h"
#include "redis/tls.h"
#include <hiredis/hiredis.h>
#include <netdb.h>
#include <stdio.h>

#define BACKOFF_MIN_USEC (250 * USEC_PER_MSEC)
#define BACKOFF_MAX_USEC (5 * USEC_PER_SEC)
/* After a connection of this duration, the backoff starts at its minimum again. */
#define BACKOFF_RESET_USEC (10 * USEC_PER_SEC)
/* How often to check the server: with Sentinels its role, since a master may become a replica without notice,
 * and whether it accepts writes. */
#define CHECK_USEC USEC_PER_SEC
/* Another move of the master within this time is followed by the next attempt. */
#define MOVE_USEC USEC_PER_SEC
/* Writes count as refused until none was for this long: at its memory limit, a server refuses some. */
#define REFUSED_USEC (5 * USEC_PER_SEC)

enum redis_phase {
        PHASE_WAITING,    /* until the next attempt */
        PHASE_LOCATING,   /* asking the Sentinels */
        PHASE_CONNECTING, /* resolving and connecting */
        PHASE_LOGIN,      /* AUTH, ROLE, SELECT, probe */
        PHASE_UP,
};

struct redis_request {
        struct redis_request *next;
        redis_reply_fn callback; /* NULL: ignore the reply */
        void *userdata;
        usec_t sent_at;
        struct question question; /* text empty: an internal command */
        bool is_left_out;         /* skipped: a substitute was sent */
        bool may_be_forbidden;    /* pass NOPERM and READONLY on as a reply */
};

struct redis {
        sd_event_source *timer; /* of the next attempt */
        redis_state_fn on_state;
        void *userdata;

        struct redis_url url;      /* with the user and password of the settings if the URL has no password */
        char *probe_key;           /* NULL: the key with the empty name */
        char *write_key;           /* for the check of writes; NULL: none */
        struct tls *tls;           /* NULL: no TLS */
        struct sentinel *sentinel; /* NULL: the URL has the server's address */
        char master[NI_MAXHOST];   /* as named by the Sentinels */
        char server_text[NI_MAXHOST + 16];

        struct connection *connection;
        struct endpoint endpoint; /* of the connection */
        enum redis_phase phase;
        enum reader_state state;
        struct error_report error;
        usec_t up_at;
        usec_t checked_at; /* when the server was last checked */
        usec_t refused_at; /* when it last refused a write; 0: not known to */
        struct error_report refusal;
        bool unchecked; /* writes cannot be checked over this connection */
        usec_t rtt_usec;
        uint64_t connection_count;
        unsigned failures; /* consecutive, for the backoff */
        usec_t moved_at;   /* when a Sentinel last named another master */

        struct redis_request *commands; /* without a reply, oldest first */
        struct redis_request *newest;   /* last in the list; valid if the list is not empty */
        struct oversized oversized;

        unsigned entered; /* our calls on the stack */
        bool freed;
};

static void redis_destroy(struct redis *redis)
{
        connection_free(redis->connection);
        sentinel_free(redis->sentinel);
        tls_free(redis->tls);
        sd_event_source_disable_unref(redis->timer);
        redis_url_clear(&redis->url);
        free(redis->probe_key);
        free(redis->write_key);
        free(redis);
}

DEFINE_ENTER_AND_LEAVE(struct redis, redis_enter, redis_leave, redis_destroy)

static void set_state(struct redis *redis, enum reader_state state, const struct error_report *error)
{
        if (redis->state == state && error_report_equal(&redis->error, error))
                return;
        redis->state = state;
        redis->error = *error;
        if (redis->on_state && !redis->freed)
                redis->on_state(redis, state, redis_error(redis), redis->userdata);
}

/* Removes the oldest command and calls its callback. */
static void command_finish(struct redis *redis, const redisReply *reply)
{
        struct redis_request *command = redis->commands;

        redis->commands = command->next;
        if (command->callback)
                command->callback(redis, reply, command->userdata);
        free(command);
}

/* Ends the attempt or the connection: fails all pending commands and schedules the next attempt. */
static void attempt_end(struct redis *redis, const struct error_report *error)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);
        bool late = redis->phase >= PHASE_LOGIN && connection_was_late(redis->connection);

        connection_close(redis->connection);
        if (redis->sentinel && (redis->phase == PHASE_CONNECTING || redis->phase == PHASE_LOGIN))
                sentinel_distrust(redis->sentinel);
        if (redis->phase == PHASE_UP && now - redis->up_at >= BACKOFF_RESET_USEC)
                redis->failures = 0;
        redis->failures++;
        redis->phase = PHASE_WAITING;
        redis->rtt_usec = 0;
        timer_set(redis->timer, now + reconnect_delay(redis->failures, BACKOFF_MIN_USEC, BACKOFF_MAX_USEC));

        redis_enter(redis);
        while (redis->commands)
                command_finish(redis, NULL);
        set_state(redis, late ? READER_STATE_SLOW : READER_STATE_DOWN, error);
        redis_leave(redis);
}

/* Ends the attempt with this error. said: the reply of the server, quoted with the error; NULL: none. */
static _printf_(3, 4) void attempt_refused(struct redis *redis, const char *said, const char *format, ...)
{
        struct error_report error;
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(error.text, sizeof(error.text), format, arguments);
        va_end(arguments);
        printable_replace(error.text, strlen(error.text), false);
        quoted_set(&error.quoted, said);
        attempt_end(redis, &error);
}

#define attempt_failed(redis, ...) attempt_refused(redis, NULL, __VA_ARGS__)

static bool reply_is_error(const redisReply *reply, const char *code)
{
        size_t len = strlen(code);

        return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, code, len) == 0 &&
               (reply->str[len] == ' ' || reply->str[len] == '\0');
}

struct unfit {
        const char *code, *remedy;
};

/* Handles errors that are not the command's fault: the server, or our access to it, is unusable. Returns the
 * code and a remedy, or NULL for other replies. */
static const struct unfit *find_unfit(const struct redis *redis, const redisReply *reply)
{
        static const struct unfit
                moved = {"READONLY", "this server is a replica now"},
                errors[] = {
                        {"LOADING", "Redis is loading its data from disk. Wait until loading has ended"},
                        {"MASTERDOWN", "this replica has lost its master"},
                        {"NOAUTH", "a password is required. Set password or password_file in [redis]"},
                        {"NOPERM", "the ACL denies this user access to the keys of the framework. Check "
                                   "username in [redis]"},
                        {"READONLY", "this server is a replica. Set url to the master"},
                };

        if (redis->sentinel && reply_is_error(reply, "READONLY"))
                return &moved;
        for (size_t i = 0; i < ELEMENTSOF(errors); i++)
                if (reply_is_error(reply, errors[i].code))
                        return &errors[i];
        return NULL;
}

static int command_queue(struct redis *redis, redis_reply_fn callback, void *userdata, int argc,
                         const char *const argv[], const size_t argvlen[])
{
        struct redis_request *command = malloc(sizeof(*command));

        if (!command)
                return -ENOMEM;
        int r = connection_send(redis->connection, argc, argv, argvlen);
        if (r < 0) {
                free(command);
                return r;
        }
        *command = (struct redis_request){
                .callback = callback,
                .userdata = userdata,
                .sent_at = clock_now(CLOCK_MONOTONIC),
        };
        if (redis->commands)
                redis->newest->next = command;
        else
                redis->commands = command;
        redis->newest = command;
        return 0;
}

static void report_up(struct redis *redis)
{
        bool refusing = redis->refused_at != 0 &&
                        usec_sub(clock_now(CLOCK_MONOTONIC), redis->refused_at) < REFUSED_USEC;

        set_state(redis, refusing ? READER_STATE_REFUSING : READER_STATE_CONNECTED,
                  refusing ? &redis->refusal : &(struct error_report){0});
}

static void set_up(struct redis *redis)
{
        redis->phase = PHASE_UP;
        redis->up_at = clock_now(CLOCK_MONOTONIC);
        redis->connection_count++;
        report_up(redis);
}

/* Takes the reply to the check of writes. Other errors are no verdict: an ACL, or a proxy. */
static void on_write(struct redis *redis, const redisReply *reply, _unused_ void *userdata)
{
        static const struct {
                const char *code, *why;
        } refusals[] = {
                {"OOM", "its memory is full (maxmemory)"},
                {"MISCONF", "it cannot write its data to disk"},
                {"READONLY", "it is a replica"},
                {"NOREPLICAS", "too few replicas are connected to it (min-replicas-to-write)"},
        };
        size_t i = 0;

        if (!reply)
                return;
        while (i < ELEMENTSOF(refusals) && !reply_is_error(reply, refusals[i].code))
                i++;
        if (i < ELEMENTSOF(refusals)) {
                error_report_set(&redis->refusal, "%s", refusals[i].why);
                quoted_set(&redis->refusal.quoted, reply->str);
                redis->refused_at = clock_now(CLOCK_MONOTONIC);
        } else if (reply->type == REDIS_REPLY_ERROR) {
                redis->unchecked = true;
                redis->refused_at = 0;
        }
        if (redis->phase == PHASE_UP)
                report_up(redis);
}

/* Writes nothing, into a key that does not exist: no data change, nor does a replica or a file see the
 * command. The server refuses it like any write that needs memory. */
static int ask_write(struct redis *redis)
{
        const char *const argv[] = {"SETRANGE", redis->write_key, "0", ""};

        return redis->write_key && !redis->unchecked
                       ? command_queue(redis, on_write, NULL, ELEMENTSOF(argv), argv, NULL)
                       : 0;
}

/* The probe reads a key, as polls do. The probe's reply is the last of the login. */
static void on_probe(struct redis *redis, const redisReply *reply, _unused_ void *userdata)
{
        if (!reply || redis->phase != PHASE_LOGIN)
                return;
        if (reply->type == REDIS_REPLY_ERROR) {
                attempt_refused(redis, reply->str, "keys cannot be read: Redis refuses the command EXISTS");
                return;
        }
        if (reply->type != REDIS_REPLY_INTEGER) {
                attempt_failed(redis, "the server is not a Redis. Check url");
                return;
        }
        set_up(redis);
}

static void on_select(struct redis *redis, const redisReply *reply, _unused_ void *userdata)
{
        if (reply && reply->type == REDIS_REPLY_ERROR)
                attempt_refused(redis, reply->str,
                                "database %u cannot be used: Redis refuses the command SELECT",
                                redis->url.db);
}

/* Omits the text of the error: some servers repeat the arguments in it. */
static void on_auth(struct redis *redis, const redisReply *reply, _unused_ void *userdata)
{
        if (!reply || reply->type != REDIS_REPLY_ERROR)
                return;
        if (strstr(reply->str, "without any password configured") || strstr(reply->str, "no password is set"))
                attempt_failed(redis, "the server has no password, but one is set. Remove it from [redis]");
        else if (reply_is_error(reply, "ERR"))
                attempt_failed(redis, "the server refuses AUTH with %s. Check username in [redis]",
                               redis->url.username ? "a user name" : "a password alone");
        else
                attempt_failed(redis,
                               "the server refuses user or password. Check username and password in [redis]");
}

/* Rejects a replica, which may have outdated data. */
static void on_role(struct redis *redis, const redisReply *reply, _unused_ void *userdata)
{
        if (!reply)
                return;
        if (reply->type == REDIS_REPLY_ERROR)
                attempt_refused(redis, reply->str, "role of %s is unknown: Redis refuses the command ROLE",
                                redis->server_text);
        else if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0 ||
                 reply->element[0]->type != REDIS_REPLY_STRING)
                attempt_failed(redis, "the server at %s is not a Redis", redis->server_text);
        else if (strcmp(reply->element[0]->str, "master") != 0)
                attempt_refused(redis, reply->element[0]->str, "%s is not a master", redis->server_text);
}

static int ask_role(struct redis *redis)
{
        static const char *const argv[] = {"ROLE"};

        return command_queue(redis, on_role, NULL, ELEMENTSOF(argv), argv, NULL);
}

/* Sends login, database and probe together. */
static void on_up(_unused_ struct connection *connection, void *userdata)
{
        struct redis *redis = userdata;
        const char *username = redis->url.username, *password = redis->url.password;
        int r = 0;

        redis->phase = PHASE_LOGIN;
        redis->unchecked = false;
        redis->checked_at = clock_now(CLOCK_MONOTONIC);
        if (password) {
                const char *argv[] = {"AUTH", username ?: password, password};
                r = command_queue(redis, on_auth, NULL, username ? 3 : 2, argv, NULL);
        }
        if (r == 0 && redis->sentinel)
                r = ask_role(redis);
        if (r == 0 && redis->url.db != 0) {
                char db[16];
                snprintf(db, sizeof(db), "%u", redis->url.db);
                const char *argv[] = {"SELECT", db};
                r = command_queue(redis, on_select, NULL, ELEMENTSOF(argv), argv, NULL);
        }
        if (r == 0)
                r = ask_write(redis);
        if (r == 0) {
                const char *argv[] = {"EXISTS", redis->probe_key ?: ""};
                r = command_queue(redis, on_probe, NULL, ELEMENTSOF(argv), argv, NULL);
        }
        if (r < 0)
                attempt_failed(redis, "cannot log in: %s", strerror(-r));
}

static void connect_server(struct redis *redis)
{
        redis->phase = PHASE_CONNECTING;
        connection_open(redis->connection, &redis->endpoint);
}

static int on_timer(_unused_ sd_event_source *source, _unused_ uint64_t due, void *userdata)
{
        struct redis *redis = userdata;

        if (redis->sentinel) {
                redis->phase = PHASE_LOCATING;
                sentinel_locate(redis->sentinel);
        } else {
                connect_server(redis);
        }
        return 0;
}

static void on_master(const char *host, unsigned port, void *userdata)
{
        struct redis *redis = userdata;
        bool same = redis->endpoint.port == port && strcmp(redis->master, host) == 0;

        usec_t now = clock_now(CLOCK_MONOTONIC);

        /* No change of the master: continue the attempt, or the wait for the next one. */
        if (same && redis->phase != PHASE_LOCATING)
                return;
        /* A Sentinel that names others all the time costs little: the next attempt asks for the master. */
        bool waits = redis->phase != PHASE_LOCATING && now < usec_add(redis->moved_at, MOVE_USEC);
        redis_enter(redis);
        if (redis->phase >= PHASE_CONNECTING)
                attempt_failed(redis, "the master moved from %s to %.80s, port %u", redis->server_text, host,
                               port);
        /* -fanalyzer: the object stays until redis_leave(). */
        if (!redis->freed && !waits) {
                redis->moved_at = now;
                snprintf(redis->master, sizeof(redis->master), "%s", host);
                snprintf(redis->server_text, sizeof(redis->server_text),
                         strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
                redis->endpoint = (struct endpoint){.host = redis->master, .port = port, .tls = redis->tls};
                (void)sd_event_source_set_enabled(redis->timer, SD_EVENT_OFF);
                connect_server(redis);
        }
        redis_leave(redis);
}

static void on_none(const struct error_report *why, void *userdata)
{
        struct redis *redis = userdata;

        if (redis->phase == PHASE_LOCATING)
                attempt_end(redis, why);
}

static const struct sentinel_ops sentinel_ops = {.on_master = on_master, .on_none = on_none};

static void on_lost(_unused_ struct connection *connection, const char *why, void *userdata)
{
        const struct redis *redis = userdata;

        if (redis->sentinel)
                attempt_failed(userdata, "%s: %s", redis->server_text, why);
        else
                attempt_failed(userdata, "%s", why);
}

/* Skip the command, since a retry would fail again. Commands of the login cannot be skipped. */
static void on_oversized(struct connection *connection, const char *what, void *userdata)
{
        struct redis *redis = userdata;
        const struct question *question = redis->commands ? &redis->commands->question : NULL;
        char why[256], span[FORMAT_MAX];

        if (question && question->text[0] != '\0') {
                oversized_add(&redis->oversized, question, clock_now(CLOCK_MONOTONIC));
                snprintf(why, sizeof(why),
                         "connection lost: the server sent %s to '%s'; this command is skipped for %s", what,
                         question->text, format_duration(OVERSIZED_USEC, span, sizeof(span)));
        } else {
                snprintf(why, sizeof(why), "connection lost: the server sent %s", what);
        }
        on_lost(connection, why, redis);
}

/* Formatted like an error reply of the server. */
static void answer_left_out(struct redis *redis)
{
        char text[256], span[FORMAT_MAX];

        snprintf(text, sizeof(text), "reply to '%s' was too large; this command is skipped for %s",
                 redis->commands->question.text, format_duration(OVERSIZED_USEC, span, sizeof(span)));
        const redisReply reply = {.type = REDIS_REPLY_ERROR, .str = text, .len = strlen(text)};
        command_finish(redis, &reply);
}

static void on_reply(_unused_ struct connection *connection, const redisReply *reply, void *userdata)
{
        struct redis *redis = userdata;
        const struct redis_request *command = redis->commands;

        redis->rtt_usec = MAX(usec_sub(clock_now(CLOCK_MONOTONIC), command->sent_at), 1U);
        bool forbidden =
                command->may_be_forbidden &&
                (reply_is_error(reply, "NOPERM") || (!redis->sentinel && reply_is_error(reply, "READONLY")));
        const struct unfit *unfit = command->callback == on_role || command->callback == on_write || forbidden
                                            ? NULL
                                            : find_unfit(redis, reply);
        redis_enter(redis);
        if (unfit)
                attempt_refused(redis, reply->str, "the server reports %s: %s", unfit->code, unfit->remedy);
        else if (command->is_left_out)
                answer_left_out(redis);
        else
                command_finish(redis, reply);
        redis_leave(redis);
}

static void on_idle(_unused_ struct connection *connection, void *userdata)
{
        struct redis *redis = userdata;
        static const char *const ping[] = {"PING"};
        int r = redis->sentinel ? ask_role(redis)
                                : command_queue(redis, NULL, NULL, ELEMENTSOF(ping), ping, NULL);

        if (r == 0)
                r = ask_write(redis);
        if (r < 0)
                attempt_failed(redis, "cannot send a command: out of memory");
}

static const struct connection_ops connection_ops = {
        .on_up = on_up,
        .on_lost = on_lost,
        .on_oversized = on_oversized,
        .on_reply = on_reply,
        .on_idle = on_idle,
};

/* Adds the password of the settings, and their user, if the URL has no password. */
static int add_credentials(struct redis_url *url, const struct redis_settings *settings)
{
        if (url->password || !settings->password)
                return 0;
        url->password = strdup(settings->password);
        if (url->username || !settings->username)
                return url->password ? 0 : -ENOMEM;
        url->username = strdup(settings->username);
        return url->password && url->username ? 0 : -ENOMEM;
}

int redis_new(sd_event *event, const struct redis_settings *settings, struct settings_tls_refusal *refusal,
              redis_state_fn on_state, void *userdata, struct redis **ret)
{
        struct redis *redis = calloc(1, sizeof(*redis));
        if (!redis)
                return -ENOMEM;
        redis->on_state = on_state;
        redis->userdata = userdata;

        struct settings_tls_refusal unused;
        bool by_sentinels = settings->sentinels;
        int r = redis_url_parse(settings->url, &redis->url, NULL);
        if (r >= 0 && redis->url.tls)
                r = tls_new(settings, &redis->tls, refusal ?: &unused);
        if (r >= 0)
                r = add_credentials(&redis->url, settings);
        if (r >= 0)
                r = sd_event_add_time(event, &redis->timer, CLOCK_MONOTONIC, 0, 1, on_timer, redis);
        if (r >= 0)
                r = connection_new(event, &connection_ops, settings->timeout, redis, &redis->connection);
        if (r >= 0 && by_sentinels)
                r = sentinel_new(event, settings, redis->tls, &sentinel_ops, redis, &redis->sentinel);
        if (r < 0) {
                redis_destroy(redis);
                return r;
        }
        redis->endpoint = (struct endpoint){
                .path = redis->url.path,
                .host = by_sentinels ? "" : redis->url.host,
                .port = redis->url.port,
                .tls = redis->tls,
        };
        *ret = redis;
        return 0;
}

int redis_probe(struct redis *redis, const char *key)
{
        free(redis->probe_key);
        free(redis->write_key);
        redis->probe_key = strdup(key);
        if (asprintf(&redis->write_key, "%s:sqmgr", key) < 0)
                redis->write_key = NULL;
        return redis->probe_key && redis->write_key ? 0 : -ENOMEM;
}

void redis_on_decoding(struct redis *redis, void (*decoding)(bool begins, void *userdata), void *userdata)
{
        connection_on_decoding(redis->connection, decoding, userdata);
        if (redis->sentinel)
                sentinel_on_decoding(redis->sentinel, decoding, userdata);
}

struct redis *redis_free(struct redis *redis)
{
        if (!redis || redis->freed)
                return NULL;
        redis->freed = true;
        redis->phase = PHASE_WAITING;
        (void)sd_event_source_set_enabled(redis->timer, SD_EVENT_OFF);
        redis->connection = connection_free(redis->connection);
        redis->sentinel = sentinel_free(redis->sentinel);

        redis_enter(redis);
        while (redis->commands)
                command_finish(redis, NULL);
        redis_leave(redis);
        return NULL;
}

static bool is_oversized(struct redis *redis, const struct question *question)
{
        if (redis->oversized.n == 0)
                return false;
        oversized_expire(&redis->oversized, clock_now(CLOCK_MONOTONIC));
        return oversized_has(&redis->oversized, question);
}

int redis_command(struct redis *redis, redis_reply_fn callback, void *userdata, int argc,
                  const char *const argv[], const size_t argvlen[])
{
        if (redis->phase != PHASE_UP)
                return -ENOTCONN;
        if (usec_sub(clock_now(CLOCK_MONOTONIC), redis->checked_at) >= CHECK_USEC) {
                redis->checked_at = clock_now(CLOCK_MONOTONIC);
                int r = redis->sentinel ? ask_role(redis) : 0;
                if (r == 0)
                        r = ask_write(redis);
                if (r < 0)
                        return r;
        }
        /* A substitute that the ACL allows, whose reply keeps the order of replies. */
        const char *const instead[] = {"EXISTS", redis->probe_key ?: ""};
        struct question question = question_of(argc, argv, argvlen);
        bool is_left_out = is_oversized(redis, &question);
        int r = is_left_out ? command_queue(redis, callback, userdata, ELEMENTSOF(instead), instead, NULL)
                            : command_queue(redis, callback, userdata, argc, argv, argvlen);
        if (r < 0)
                return r;
        redis->newest->question = question;
        redis->newest->is_left_out = is_left_out;
        return 0;
}

int redis_command_forbiddable(struct redis *redis, redis_reply_fn callback, void *userdata, int argc,
                              const char *const argv[], const size_t argvlen[])
{
        int r = redis_command(redis, callback, userdata, argc, argv, argvlen);

        if (r == 0)
                redis->newest->may_be_forbidden = true;
        return r;
}

enum reader_state redis_state(const struct redis *redis)
{
        return redis->state;
}

const struct error_report *redis_error(const struct redis *redis)
{
        return redis->error.text[0] != '\0' ? &redis->error : NULL;
}

const char *redis_server_text(const struct redis *redis)
{
        return redis->sentinel && redis->phase == PHASE_UP ? redis->server_text : NULL;
}

unsigned redis_database(const struct redis *redis)
{
        return redis->url.db;
}

usec_t redis_rtt_usec(const struct redis *redis)
{
        return redis->rtt_usec;
}

uint64_t redis_connection_count(const struct redis *redis)
{
        return redis->connection_count;
}
