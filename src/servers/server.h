/* SPDX-License-Identifier: MIT */
/* A server that sqmgr reads, a Redis or a database: its state, the queries to it, and the answers. Runs on
 * sqmgr's own loop, and never blocks it. A backend (servers/backend.h) speaks to the server, and connects
 * again by itself.
 *
 * Whoever can write to the server chooses what answers say, within the bounds of the decoders. */
#pragma once

#include "base/macro.h"
#include "servers/answer.h"
#include <systemd/sd-event.h>

struct database_starter; /* database/database.h */
struct reader;
struct reader_backend; /* servers/backend.h */
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
/* With Sentinels, while connected: returns `host:port` of the current master. Otherwise NULL. */
const char *reader_server_text(const struct reader *reader);
/* Returns the duration of the last command; 0: unknown. */
usec_t reader_rtt_usec(const struct reader *reader);
/* Returns the number of successful connections. If the number changed, earlier answers may come from another
 * server. */
uint64_t reader_connection_count(const struct reader *reader);
