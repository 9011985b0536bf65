/* SPDX-License-Identifier: MIT */
/* A server that sqmgr reads, a Redis or a database: its state, the queries to it, and the answers. Runs on
 * sqmgr's own loop, and never blocks it. A backend, struct reader_backend, speaks to the server, and connects
 * again by itself.
 *
 * Whoever can write to the server chooses what answers say, within the bounds of the decoders. */
#pragma once

#include "servers/answer.h"
#include <systemd/sd-event.h>

struct database_starter; /* database/database.h */
struct reader;
struct reader_backend; /* below */
struct redis_settings; /* settings/settings.h */

#define READER_SERVER_MAX 512

/* Called when the state or the error has changed; error is NULL if there is none. The callback may call
 * reader_free(). */
typedef void (*reader_state_fn)(struct reader *reader, enum reader_state state,
                                const struct error_report *error, void *userdata);

/* Called exactly once for each accepted query, never from within reader_ask(). The callback may do anything,
 * including reader_free(), and may take what the answer owns. */
typedef void (*reader_answer_fn)(struct answer *answer, void *userdata);

/* Called with the server whose bytes are decoded next; and with NULL when that is over. */
typedef void (*reader_decoding_fn)(const struct reader *reader, void *userdata);

struct reader_options {
        const struct reader_backend *backend;
        unsigned framework; /* traits.id */
        const struct redis_settings *settings;
        const char *url;                  /* NULL: of a Redis, the server that the settings name */
        struct database_starter *starter; /* of a database; must outlive the server */
        reader_state_fn on_state;         /* NULL: none */
        void *userdata;                   /* of on_state */
        reader_decoding_fn decoding;      /* NULL: none */
        void *decoding_userdata;          /* must outlive the server */
};

/* Connects as soon as the loop runs. options are copied, but for what must outlive the server. A server that
 * cannot be used, such as one with an invalid URL, is down forever. Returns 0 with *ret, to be freed by
 * reader_free(); or -errno. */
int reader_new(sd_event *event, const struct reader_options *options, struct reader **ret);

/* From within this call, calls back all pending queries with ANSWER_LOST. on_state() is not called any more.
 * Accepts NULL. Returns NULL. */
struct reader *reader_free(struct reader *reader);

/* Ends the connection until reader_resume(). From within this call, calls back all pending queries with
 * ANSWER_LOST, and reports the server as down, for this reason. Only from the loop, and not from within a
 * callback of the server. */
void reader_pause(struct reader *reader, const char *why);
/* Connects again as soon as the loop runs. options are those of reader_new(); callbacks stay. Returns 0 or
 * -errno. */
int reader_resume(struct reader *reader, const struct reader_options *options);

/* Sends a query, which is copied. All queries of one iteration of the loop are sent together. callback may be
 * NULL. Returns 0, or an error without calling callback:
 *
 * - -ENOTCONN: the state is not one of reader_state_answers()
 * - -ENOMEM */
int reader_ask(struct reader *reader, const struct query *query, reader_answer_fn callback, void *userdata);

/* Drops the callbacks of all pending queries with this userdata. The queries are still executed. */
void reader_forget(struct reader *reader, const void *userdata);

/* Returns the current state: READER_STATE_CONNECTING before the first report. */
enum reader_state reader_state(const struct reader *reader);
/* Returns "connecting", "connected" or "down". */
const char *reader_state_name(enum reader_state value);
/* Returns the reason for the state down; NULL: no error. */
const struct error_report *reader_error(const struct reader *reader);
/* Returns the URL without user and password; with Sentinels, with the name of the master instead of the
 * host. */
const char *reader_url_text(const struct reader *reader);
/* Returns the key of the server in the ledger; see continuity/quarantine.h. */
uint32_t reader_quarantine_key(const struct reader *reader);
/* With Sentinels, while connected: returns `host:port` of the current master. Otherwise NULL. */
const char *reader_server_text(const struct reader *reader);
/* Returns the duration of the last command; 0: unknown. */
usec_t reader_rtt_usec(const struct reader *reader);
/* Returns the number of successful connections. If the number changed, earlier answers may come from another
 * server. */
uint64_t reader_connection_count(const struct reader *reader);

/* For backends: */

struct ask;

struct reader_backend {
        /* Returns the URL of the server for people, without user and password; NULL if memory is short. */
        char *(*url_text)(const struct reader_options *options);
        /* Makes the connection that options describe. Once the loop runs, reports each state by
         * reader_report_state(). Returns 0 with *ret; or -errno, with a sentence in *error unless that is
         * -ENOMEM. options are valid during the call. */
        int (*begin)(struct reader *reader, const struct reader_options *options, struct error_report *error,
                     void **ret);
        /* Ends all asks that it holds, and frees the backend. May be called from within anything that the
         * backend calls. */
        void (*end)(void *backend);
        /* Answers a query: ask_done() or an ask_fail function is called exactly once, within this call or
         * later. */
        void (*ask)(void *backend, struct ask *ask);
        /* How long the last command took; 0: unknown. */
        usec_t (*rtt_usec)(const void *backend);
};

struct reader_report {
        enum reader_state state;
        uint64_t connections; /* how many have succeeded */
        struct error_report error;
        char server[READER_SERVER_MAX]; /* `host:port` of the master that Sentinels named; "": none */
};

sd_event *reader_event(const struct reader *reader);
/* Reports the state of the connection. Call from the loop, as the last call: the server may be freed within
 * it. */
void reader_report_state(struct reader *reader, const struct reader_report *report);
/* Encloses all decoding of bytes of the server: called with true before and with false afterwards, also if
 * the server is freed in between. Calls may be nested. */
void reader_decoding(struct reader *reader, bool begins);

/* A query that a backend answers. The backend starts the work, and ends the ask exactly
 * once: by ask_done() or by an ask_fail function. From within the call of the backend that ends it, the
 * server may be freed. */
struct ask {
        struct reader *reader;
        struct query query; /* with texts of its own, each of which is followed by a NUL */
        void *work;         /* of the backend */
        /* For work that needs the loop beside the connection: ends the work if the server is freed before
         * ask_done(); NULL: none. */
        void (*cancel)(struct ask *ask);

        /* For servers/server.c alone: */
        reader_answer_fn callback; /* NULL: nobody waits */
        void *userdata;
        struct answer *answer; /* to be delivered */
        bool answered;         /* with answer; or, if that is NULL, with too little memory for it */
        struct ask *next;
};

/* Delivers the answer, whose status is ANSWER_OK, and frees the ask. What answer owns is taken. */
void ask_done(struct ask *ask, struct answer *answer);
/* Ends the ask with the error that format describes; frees the ask. status: not ANSWER_OK. */
_printf_(3, 4) void ask_fail(struct ask *ask, enum answer_status status, const char *format, ...);
/* Ends the ask with this error, which is copied; frees the ask. status: not ANSWER_OK. */
void ask_fail_as(struct ask *ask, enum answer_status status, const struct error_report *error);
/* Ends the ask because a command could not be sent. error: -errno. Frees the ask. */
void ask_fail_errno(struct ask *ask, int error);
/* Ends the ask because the backend does not answer queries of this kind. Frees the ask. */
void ask_fail_unknown(struct ask *ask);

static inline const struct query *ask_query(const struct ask *ask)
{
        return &ask->query;
}

/* Returns the backend of the server that the ask belongs to. */
void *ask_backend(const struct ask *ask);
