/* SPDX-License-Identifier: MIT */
/* sqmgr's end of a reader, a process that talks to one server: starts the process, sends queries, and
 * restarts the process when needed. Never blocks the loop.
 *
 * Messages of the reader are never trusted (queries/answer.h). A reader is replaced if it exits, does not
 * answer a ping within READER_SILENCE_USEC, or sends an invalid message. Until the next reader has connected,
 * the server counts as down. */
#pragma once

#include "base/usec.h"
#include "queries/answer.h"
#include <systemd/sd-event.h>

struct reader;
struct reader_configuration; /* queries/configuration.h */

/* A reader that does not answer a ping for this long is ended. The loop of a reader never blocks, and handles
 * the largest reply in far less time. */
#define READER_SILENCE_USEC (15 * USEC_PER_SEC)

/* The starter's handle of a process. */
struct reader_process;

/* How processes are started: by daemon/runtime/reader_process.h, or within a test. */
struct reader_starter {
        /* Starts a reader: the program for the engine of the configuration. Returns 0 with *ret
         * and *ret_fd, our end of a SOCK_SEQPACKET pair, which the caller owns; -ENOENT if the program is
         * missing; -EBUSY if too many killed readers have not ended; or another -errno. ended()
         * is called once from the loop, unless stop() was called before; *ret is invalid afterwards. how: the
         * end of a sentence, such as "exited with status 1". */
        int (*start)(struct reader_starter *starter, const struct reader_configuration *configuration,
                     void (*ended)(const char *how, void *userdata), void *userdata,
                     struct reader_process **ret, int *ret_fd);
        /* Kills the process. process is invalid afterwards. */
        void (*stop)(struct reader_process *process);
};

/* Called when the state or the error has changed; error is NULL if there is none. The callback may call
 * reader_free(). */
typedef void (*reader_state_fn)(struct reader *reader, enum reader_state state,
                                const struct error_report *error, void *userdata);

/* Called exactly once for each accepted query, never from within reader_ask(). The callback may do anything,
 * including reader_free(), and may take what the answer owns. */
typedef void (*reader_answer_fn)(struct answer *answer, void *userdata);

/* Takes the configuration. Starts the process as soon as the loop runs. starter must outlive the reader.
 * on_state may be NULL; with configuration->check it is called once, without an error if the configuration is
 * good. Returns 0 with *ret, to be freed by reader_free(); or -errno with configuration untouched. */
int reader_new(sd_event *event, struct reader_starter *starter, struct reader_configuration *configuration,
               reader_state_fn on_state, void *userdata, struct reader **ret);

/* Ends the process. From within this call, calls back all pending queries with ANSWER_LOST. on_state() is not
 * called any more. Returns NULL. */
struct reader *reader_free(struct reader *reader);

/* Sends a query, which is copied. All queries of one iteration of the loop are sent together. callback may be
 * NULL. Returns 0, or an error without calling callback:
 *
 * - -ENOTCONN: the state is not one of reader_state_answers()
 * - -ENOBUFS: the query is too large, or the reader has too many unread queries
 * - -ENOMEM */
int reader_ask(struct reader *reader, const struct query *query, reader_answer_fn callback, void *userdata);

/* Drops the callbacks of all pending queries with this userdata. The queries are still executed. */
void reader_forget(struct reader *reader, const void *userdata);

/* Call from within a callback whose answer is impossible. The process is replaced as soon as the callback
 * returns. */
void reader_refuse(struct reader *reader);

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
/* Returns how many readers were replaced for an invalid message. */
uint64_t reader_refusals(const struct reader *reader);
/* Returns the file for TLS that a check has refused; _SETTINGS_TLS_MAX: none. */
enum settings_tls_file reader_refused_file(const struct reader *reader);
