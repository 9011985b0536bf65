/* SPDX-License-Identifier: MIT */
/* A query that a reader answers. The backend (reader/backend.h) starts the work, and ends the ask exactly
 * once: by ask_done() or by an ask_fail function. */
#pragma once

#include "queries/answer.h"

struct reader_configuration; /* queries/configuration.h */
struct reader_server;        /* reader/server.h */

struct ask {
        struct reader_server *server;
        struct query_read read;
        struct answer answer; /* all zeros but the kind; filled in by the backend */
        void *work;           /* of the backend */
        struct ask *next;     /* see ask_keep() */
        void (*cancel)(struct ask *ask);
};

/* Sends the answer and frees the ask. */
void ask_done(struct ask *ask);
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
        return &ask->read.query;
}

/* For work that needs the loop beside commands: cancel() ends the work if the server is freed before
 * ask_done(). */
void ask_keep(struct ask *ask, void (*cancel)(struct ask *ask));

/* Return the backend and the configuration of the server that the ask belongs to. */
void *ask_backend(const struct ask *ask);
const struct reader_configuration *ask_configuration(const struct ask *ask);
