/* SPDX-License-Identifier: MIT */
/* Asks Sentinels for the address of the master, and subscribes to one of them for failovers; see the header.
 *
 * Uses one connection. Query and subscription are sent together, so no failover is missed between them. A
 * subscribed connection cannot send queries, so each query opens a new connection. */
#include "redis/sentinel.h"
#include "base/parse.h"
#include "io/clock.h"
#include "io/timer.h"
#include "redis/connection.h"
#include "settings/redis_url.h"
#include "settings/settings.h"
#include <hiredis/hiredis.h>
#include <netdb.h>
#include <stdio.h>

/* The delay after all Sentinels failed while the current master still works. */
#define RETRY_USEC (2 * USEC_PER_SEC)
#define CHANNEL    "+switch-master"

/* The next expected reply. */
enum sentinel_step { STEP_AUTH, STEP_ADDRESS, STEP_SUBSCRIBE, STEP_LISTENING };

struct sentinel {
        sd_event_source *retry;
        const struct sentinel_ops *ops;
        void *userdata;
        struct redis_url *list; /* host and port */
        size_t n;
        struct tls *tls; /* NULL: no TLS; borrowed */
        char *master_name;
        char *password;

        struct connection *connection;
        size_t at;       /* index of the Sentinel that is queried or subscribed to */
        size_t tried;    /* failures in this round */
        bool asked;      /* sentinel_locate() awaits a result */
        bool distrusted; /* the named server was not a master */
        enum sentinel_step step;
        char host[NI_MAXHOST]; /* of the named master */
        unsigned port;
};

static void open_current(struct sentinel *sentinel)
{
        const struct redis_url *url = &sentinel->list[sentinel->at];

        sentinel->step = sentinel->password ? STEP_AUTH : STEP_ADDRESS;
        connection_open(sentinel->connection,
                        &(struct endpoint){.host = url->host, .port = url->port, .tls = sentinel->tls});
}

static void begin_round(struct sentinel *sentinel)
{
        sentinel->tried = 0;
        if (sentinel->distrusted)
                sentinel->at = (sentinel->at + 1) % sentinel->n;
        sentinel->distrusted = false;
        (void)sd_event_source_set_enabled(sentinel->retry, SD_EVENT_OFF);
        open_current(sentinel);
}

/* Tries the next Sentinel, or reports that none can name the master. May free the sentinel: a callback must
 * not use it afterwards. said: the reply of the Sentinel; NULL: none. */
static void try_next(struct sentinel *sentinel, const char *error, const char *said)
{
        const struct redis_url *url = &sentinel->list[sentinel->at];
        struct error_report why;

        error_report_quote(&why, said,
                           "no Sentinel names the master '%.80s'; last asked: %.80s, port %u: %.200s",
                           sentinel->master_name, url->host, url->port, error);

        connection_close(sentinel->connection);
        sentinel->at = (sentinel->at + 1) % sentinel->n;
        if (++sentinel->tried < sentinel->n) {
                open_current(sentinel);
        } else if (sentinel->asked) {
                sentinel->asked = false;
                sentinel->ops->on_none(&why, sentinel->userdata);
        } else {
                timer_set(sentinel->retry, usec_add(clock_now(CLOCK_MONOTONIC), RETRY_USEC));
        }
}

static int on_retry(_unused_ sd_event_source *source, _unused_ uint64_t due, void *userdata)
{
        begin_round(userdata);
        return 0;
}

static void on_up(struct connection *connection, void *userdata)
{
        struct sentinel *sentinel = userdata;
        const char *auth[] = {"AUTH", sentinel->password};
        const char *ask[] = {"SENTINEL", "get-master-addr-by-name", sentinel->master_name};
        static const char *const subscribe[] = {"SUBSCRIBE", CHANNEL};
        int r = 0;

        if (sentinel->password)
                r = connection_send(connection, ELEMENTSOF(auth), auth, NULL);
        if (r >= 0)
                r = connection_send(connection, ELEMENTSOF(ask), ask, NULL);
        if (r >= 0)
                r = connection_send(connection, ELEMENTSOF(subscribe), subscribe, NULL);
        if (r < 0)
                try_next(sentinel, strerror(-r), NULL);
}

static void on_lost(_unused_ struct connection *connection, const char *why, void *userdata)
{
        struct sentinel *sentinel = userdata;

        if (sentinel->step == STEP_LISTENING)
                sentinel->tried = 0;
        try_next(sentinel, why, NULL);
}

/* A host name or an address, as it is shown. */
static bool is_host(const char *text, size_t len)
{
        for (size_t i = 0; i < len; i++)
                if (text[i] <= ' ' || text[i] > '~')
                        return false;
        return len > 0;
}

/* Stores host and port. Returns false if they are invalid. */
static bool take_address(struct sentinel *sentinel, const char *host, size_t host_len, const char *port)
{
        uint64_t number = 0;

        if (!is_host(host, host_len) || host_len >= sizeof(sentinel->host) ||
            parse_unsigned(port, 1, UINT16_MAX, &number) < 0)
                return false;
        memcpy(sentinel->host, host, host_len);
        sentinel->host[host_len] = '\0';
        sentinel->port = (unsigned)number;
        return true;
}

static bool is_text(const redisReply *reply)
{
        return reply->type == REDIS_REPLY_STRING && strlen(reply->str) == (size_t)reply->len;
}

static void on_address(struct sentinel *sentinel, const redisReply *reply)
{
        if (reply->type == REDIS_REPLY_NIL)
                try_next(sentinel, "master is unknown there. Check master_name", NULL);
        else if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || !is_text(reply->element[0]) ||
                 !is_text(reply->element[1]) ||
                 !take_address(sentinel, reply->element[0]->str, (size_t)reply->element[0]->len,
                               reply->element[1]->str))
                try_next(sentinel, "the server is not a Sentinel. Check sentinels", NULL);
        else
                sentinel->step = STEP_SUBSCRIBE;
}

static void on_error(struct sentinel *sentinel, const char *error)
{
        /* Omits the text of this error: some servers repeat the arguments in it. */
        if (sentinel->step == STEP_AUTH)
                try_next(sentinel, "sentinel_password refused. Check sentinel_password", NULL);
        else if (strncmp(error, "NOAUTH", strlen("NOAUTH")) == 0)
                try_next(sentinel, "a password is required. Set sentinel_password", NULL);
        else
                try_next(sentinel, "command refused", error);
}

static void on_reply(_unused_ struct connection *connection, const redisReply *reply, void *userdata)
{
        struct sentinel *sentinel = userdata;

        if (reply->type == REDIS_REPLY_ERROR) {
                on_error(sentinel, reply->str);
                return;
        }
        switch (sentinel->step) {
        case STEP_AUTH:
                sentinel->step = STEP_ADDRESS;
                break;
        case STEP_ADDRESS:
                on_address(sentinel, reply);
                break;
        case STEP_SUBSCRIBE:
                sentinel->step = STEP_LISTENING;
                sentinel->asked = false;
                sentinel->ops->on_master(sentinel->host, sentinel->port, sentinel->userdata);
                break;
        case STEP_LISTENING:
                break;
        }
}

static void on_idle(struct connection *connection, void *userdata)
{
        static const char *const ping[] = {"PING"};

        if (connection_send(connection, ELEMENTSOF(ping), ping, NULL) < 0)
                try_next(userdata, "out of memory", NULL);
}

/* Handles `NAME OLD-HOST OLD-PORT HOST PORT`, and ignores other messages. */
static void on_message(_unused_ struct connection *connection, const redisReply *reply, void *userdata)
{
        struct sentinel *sentinel = userdata;
        const char *text = reply->element[2]->str;
        size_t len = strlen(sentinel->master_name);

        if (sentinel->step != STEP_LISTENING || reply->elements != 3 ||
            strcmp(reply->element[1]->str, CHANNEL) != 0 || strncmp(text, sentinel->master_name, len) != 0 ||
            text[len] != ' ')
                return;
        text += len;
        for (unsigned word = 0; word < 2; word++) {
                text += strspn(text, " ");
                text += strcspn(text, " ");
        }
        text += strspn(text, " ");
        len = strcspn(text, " ");
        if (text[len] == ' ' && take_address(sentinel, text, len, text + len + 1))
                sentinel->ops->on_master(sentinel->host, sentinel->port, sentinel->userdata);
}

static const struct connection_ops connection_ops = {
        .on_up = on_up,
        .on_lost = on_lost,
        .on_reply = on_reply,
        .on_idle = on_idle,
        .on_message = on_message,
};

int sentinel_new(sd_event *event, const struct redis_settings *settings, struct tls *tls,
                 const struct sentinel_ops *ops, void *userdata, struct sentinel **ret)
{
        struct sentinel *sentinel = calloc(1, sizeof(*sentinel));

        if (!sentinel)
                return -ENOMEM;
        sentinel->tls = tls;
        sentinel->ops = ops;
        sentinel->userdata = userdata;
        int r = redis_sentinels_parse(settings->sentinels, &sentinel->list, &sentinel->n, NULL);
        if (r >= 0) {
                sentinel->master_name = strdup(settings->master_name);
                if (settings->sentinel_password)
                        sentinel->password = strdup(settings->sentinel_password);
                if (!sentinel->master_name || (settings->sentinel_password && !sentinel->password))
                        r = -ENOMEM;
        }
        if (r >= 0)
                r = timer_new(event, on_retry, sentinel, &sentinel->retry);
        if (r >= 0)
                r = connection_new(event, &connection_ops, settings->timeout, sentinel,
                                   &sentinel->connection);
        if (r < 0) {
                sentinel_free(sentinel);
                return r;
        }
        *ret = sentinel;
        return 0;
}

void sentinel_on_decoding(struct sentinel *sentinel, void (*decoding)(bool begins, void *userdata),
                          void *userdata)
{
        connection_on_decoding(sentinel->connection, decoding, userdata);
}

struct sentinel *sentinel_free(struct sentinel *sentinel)
{
        if (!sentinel)
                return NULL;
        connection_free(sentinel->connection);
        sd_event_source_disable_unref(sentinel->retry);
        redis_sentinels_free(sentinel->list, sentinel->n);
        free(sentinel->master_name);
        if (sentinel->password)
                explicit_bzero(sentinel->password, strlen(sentinel->password));
        free(sentinel->password);
        free(sentinel);
        return NULL;
}

void sentinel_locate(struct sentinel *sentinel)
{
        sentinel->asked = true;
        begin_round(sentinel);
}

void sentinel_distrust(struct sentinel *sentinel)
{
        sentinel->distrusted = true;
}
