/* SPDX-License-Identifier: MIT */
/* A connection to one database, which a helper program holds: sqmgr-postgresql or sqmgr-sqlite.
 *
 * A batch is a list of statements that run in one transaction and, on PostgreSQL, in one round trip. One
 * batch runs at a time. The connection reconnects by itself. Text of the database is untrusted: its bounds
 * are DATABASE_ROWS_MAX and DATABASE_BYTES_MAX for a batch. */
#pragma once

#include "settings/database_url.h"
#include "wire/quoted.h"
#include <systemd/sd-event.h>

struct database;

/* Bounds of all rows of a batch. A batch that breaks one fails. */
#define DATABASE_ROWS_MAX  ((size_t)256 * 1024)
#define DATABASE_BYTES_MAX ((size_t)32 * 1024 * 1024)
/* Bounds of a batch. */
#define DATABASE_COLUMNS_MAX    64
#define DATABASE_STATEMENTS_MAX 16
#define DATABASE_PARAMETERS_MAX 16 /* of a statement */

enum database_state { DATABASE_CONNECTING, DATABASE_CONNECTED, DATABASE_DOWN, _DATABASE_STATE_MAX };

/* The starter's handle of a helper program that runs. */
struct database_helper;

/* How helper programs are started: by daemon/runtime/, or within a test. */
struct database_starter {
        /* Starts the helper for the engine. Returns 0 with *ret and *ret_fd, our end of a socket pair, which
         * the caller owns; -ENOENT if the program is missing; -EBUSY if too many killed helpers have not
         * ended; or another -errno. ended() is called once from the loop, unless stop() was called before;
         * *ret is invalid afterwards. how: the end of a sentence, such as "exited with status 1". */
        int (*start)(struct database_starter *starter, enum database_engine engine,
                     void (*ended)(const char *how, void *userdata), void *userdata,
                     struct database_helper **ret, int *ret_fd);
        /* Kills the helper. helper is invalid afterwards. */
        void (*stop)(struct database_helper *helper);
};

struct database_settings {
        enum database_engine engine;      /* of url */
        struct database_starter *starter; /* not owned; outlives the database */
        const char *url;
        usec_t timeout; /* of a connection; and of a batch, both in the server and here */
        /* A statement that must succeed before the connection counts as up: the tables exist and can be
         * read. */
        const char *probe;
};

/* A statement. Parameters are texts, $1 to $n in sql, each usable more than once; NULL: SQL NULL. */
struct database_statement {
        const char *sql;
        const char *const *parameters;
        size_t n;
};

/* A row of a result, valid during the call. */
struct database_row {
        const struct field *values; /* text NULL: SQL NULL; each other text is followed by a NUL */
        size_t n;
};

enum database_result {
        DATABASE_DONE,    /* all statements have run, and the transaction is committed */
        DATABASE_REFUSED, /* the database refused a statement; nothing was changed */
        DATABASE_LOST, /* the connection or the time ran out, or a bound was broken; a batch that writes may
                        * or may not have been carried out */
        _DATABASE_RESULT_MAX,
};

struct database_ops {
        /* The state or the error has changed. error is NULL if there is none. */
        void (*state)(struct database *database, enum database_state state, const struct error_report *error,
                      void *userdata);
};

struct database_batch_ops {
        /* A row of a statement. May call database_free(). Returns 0, or -errno, which ends the batch as
         * DATABASE_LOST. */
        int (*row)(size_t statement, const struct database_row *row, void *userdata);
        /* Called exactly once for each accepted batch, never from within database_run(). error is NULL if
         * result is DATABASE_DONE. */
        void (*done)(enum database_result result, const struct error_report *error, void *userdata);
};

/* Connects as soon as the loop runs. settings are copied. Returns 0 with *ret, to be freed by
 * database_free(); or -errno. */
int database_new(sd_event *event, const struct database_settings *settings, const struct database_ops *ops,
                 void *userdata, struct database **ret);
/* Ends the batch in progress as DATABASE_LOST, from within this call. Accepts NULL. Returns NULL. */
struct database *database_free(struct database *database);

/* Runs a batch. writes: the transaction may write; otherwise it is read-only. The statements must stay valid
 * during the call only, ops until done(). Returns 0; or without calling back: -ENOTCONN; -EBUSY while a batch
 * runs; -ENOBUFS if the statements are too large; or -ENOMEM. */
int database_run(struct database *database, const struct database_statement *statements, size_t n,
                 bool writes, const struct database_batch_ops *ops, void *userdata);

/* Connects anew after a pause; the error is the reason. Call when a batch has shown that the database cannot
 * be used. */
void database_drop(struct database *database, const struct error_report *error);

enum database_state database_state(const struct database *database);
const struct error_report *database_error(const struct database *database); /* NULL: no error */
/* How long the last batch took; 0: unknown. */
usec_t database_rtt_usec(const struct database *database);
/* How many connections have succeeded. */
uint64_t database_connection_count(const struct database *database);
