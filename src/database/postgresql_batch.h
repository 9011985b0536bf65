/* SPDX-License-Identifier: MIT */
/* A batch on a connection of libpq in pipeline mode: BEGIN, the time limits, the statements, COMMIT, and
 * one synchronization. All of it is one flight, which the server answers at once. */
#pragma once

#include "database/database.h"
#include <libpq-fe.h>

struct postgresql_batch {
        const struct database_batch_ops *ops;
        void *userdata;
        size_t n_commands; /* of the flight */
        size_t command;    /* the one whose results arrive */
        bool answered;     /* the command has a result */
        bool refused;      /* a command was refused; error says why */
        bool rolling_back; /* the flight is a ROLLBACK */
        size_t rows, bytes;
        struct error_report error;
};

/* Queues the flight; PQflush() sends it. command_timeout: the server ends a statement before this time is
 * over, so that it can say so. batch has ops and userdata, and is otherwise all zeros. Returns false if the
 * connection has failed. */
bool postgresql_batch_send(struct postgresql_batch *batch, PGconn *connection, usec_t command_timeout,
                           const struct database_statement *statements, size_t n, bool writes);

/* Takes the results that have arrived, and queues a ROLLBACK if the refusal of a statement requires one.
 * Calls row(), which may end the batch (ops is NULL then) and close the connection: returns -ECANCELED.
 * Otherwise returns 0 if more results are to come; 1 if the transaction has ended; or -errno, with the error,
 * if the connection is of no use any more. */
int postgresql_batch_take(struct postgresql_batch *batch, PGconn *connection);
