/* SPDX-License-Identifier: MIT */
/* A query that a backend (servers/backend.h) answers. The backend starts the work, and ends the ask exactly
 * once: by ask_done() or by an ask_fail function. From within the call of the backend that ends it, the
 * server may be freed. */
#pragma once

#include "servers/server.h"

struct ask {
        struct reader *reader;
        struct query query; /* with texts of its own, each of which is followed by a NUL */
        void *work;         /* of the backend */
        /* For work that needs the loop beside the connection: ends the work if the server is freed before
         * ask_done(); NULL: none. */
        void (*cancel)(struct ask *ask);

        /* Of servers/server.c: */
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
