/* SPDX-License-Identifier: MIT */
/* Sends the flight of a batch, and takes its results; see the header. */
#include "database/postgresql_batch.h"
#include "base/macro.h"
#include <stdio.h>
#include <string.h>

#define COLUMNS_MAX 64

/* Commands of a flight beside its statements. */
enum { COMMAND_BEGIN, COMMAND_LIMITS, COMMANDS_BEFORE, COMMANDS_AROUND = COMMANDS_BEFORE + 1 };

static bool send_command(PGconn *connection, const char *sql, size_t n, const char *const *parameters)
{
        return PQsendQueryParams(connection, sql, (int)n, NULL, parameters, NULL, NULL, 0) == 1;
}

static bool send_limits(PGconn *connection, usec_t command_timeout)
{
        char statement[24], lock[24];
        const char *const parameters[] = {statement, lock};
        usec_t timeout = command_timeout / USEC_PER_MSEC;

        snprintf(statement, sizeof(statement), "%llu", (unsigned long long)MAX(timeout - timeout / 8, 1U));
        snprintf(lock, sizeof(lock), "%llu", (unsigned long long)MAX(timeout / 2, 1U));
        return send_command(connection,
                            "SELECT set_config('statement_timeout', $1, true), "
                            "set_config('lock_timeout', $2, true)",
                            ELEMENTSOF(parameters), parameters);
}

/* A batch that reads sees one state of all tables. */
bool postgresql_batch_send(struct postgresql_batch *batch, PGconn *connection, usec_t command_timeout,
                           const struct database_statement *statements, size_t n, bool writes)
{
        bool sent = send_command(connection,
                                 writes ? "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
                                        : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
                                 0, NULL) &&
                    send_limits(connection, command_timeout);

        batch->n_commands = n + COMMANDS_AROUND;
        for (size_t i = 0; sent && i < n; i++)
                sent = send_command(connection, statements[i].sql, statements[i].n, statements[i].parameters);
        return sent && send_command(connection, "COMMIT", 0, NULL) && PQpipelineSync(connection) == 1;
}

/* said: what the server or libpq says; NULL: nothing. Returns error. */
static int fail(struct postgresql_batch *batch, int error, const char *said, const char *why)
{
        error_report_quote(&batch->error, said, "%s", why);
        return error;
}

static int fail_by_violation(struct postgresql_batch *batch)
{
        return fail(batch, -EPROTO, NULL, "the server violates the protocol of PostgreSQL");
}

static int take_row(struct postgresql_batch *batch, const PGresult *result, int row)
{
        static const char too_much[] = "the database sent more rows or bytes than a batch may have";
        struct field values[COLUMNS_MAX];
        int n = PQnfields(result);

        if (n > COLUMNS_MAX)
                return fail(batch, -E2BIG, NULL, too_much);
        for (int i = 0; i < n; i++) {
                bool is_null = PQgetisnull(result, row, i) == 1;

                values[i] = (struct field){.text = is_null ? NULL : PQgetvalue(result, row, i),
                                           .len = is_null ? 0 : (size_t)PQgetlength(result, row, i)};
                batch->bytes += values[i].len;
        }
        if (++batch->rows > DATABASE_ROWS_MAX || batch->bytes > DATABASE_BYTES_MAX)
                return fail(batch, -E2BIG, NULL, too_much);
        if (batch->rolling_back || batch->command < COMMANDS_BEFORE ||
            batch->command + 1 >= batch->n_commands)
                return 0;
        const struct database_row taken = {.values = values, .n = (size_t)n};
        int r = batch->ops->row(batch->command - COMMANDS_BEFORE, &taken, batch->userdata);
        if (!batch->ops)
                return -ECANCELED;
        return r < 0 ? fail(batch, r, NULL, "the rows cannot be used") : 0;
}

static int take_rows(struct postgresql_batch *batch, const PGresult *result)
{
        int r = 0;

        for (int i = 0; r >= 0 && i < PQntuples(result); i++)
                r = take_row(batch, result, i);
        return r;
}

/* Quotes the code of the error too: codes, unlike messages, are not translated. */
static int take_refusal(struct postgresql_batch *batch, const PGresult *result)
{
        const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
        char said[QUOTED_MAX];

        if (!code) /* of libpq itself: the connection is gone, or memory is short */
                return fail(batch, -EIO, PQresultErrorMessage(result), "connection lost");
        if (batch->refused)
                return 0;
        snprintf(said, sizeof(said), "%s %s", code, message ?: "");
        batch->refused = true;
        return fail(batch, 0, said, "the database refused a statement");
}

/* A refused statement leaves the transaction open, and skips the COMMIT. */
static int roll_back(struct postgresql_batch *batch, PGconn *connection)
{
        batch->rolling_back = true;
        batch->n_commands = 1;
        batch->command = 0;
        batch->answered = false;
        return send_command(connection, "ROLLBACK", 0, NULL) && PQpipelineSync(connection) == 1
                       ? 0
                       : fail(batch, -EIO, PQerrorMessage(connection), "connection lost");
}

static int take_synchronization(struct postgresql_batch *batch, PGconn *connection)
{
        if (batch->command != batch->n_commands)
                return fail_by_violation(batch);
        if (PQtransactionStatus(connection) == PQTRANS_IDLE)
                return 1;
        return batch->refused && !batch->rolling_back ? roll_back(batch, connection)
                                                      : fail_by_violation(batch);
}

/* A transaction that has failed answers COMMIT with ROLLBACK. */
static int take_tag(struct postgresql_batch *batch, PGresult *result)
{
        bool commits = !batch->rolling_back && batch->command + 1 == batch->n_commands;

        return commits && strcmp(PQcmdStatus(result), "COMMIT") != 0 ? fail_by_violation(batch) : 0;
}

static int take_result(struct postgresql_batch *batch, PGconn *connection, PGresult *result)
{
        batch->answered = true;
        switch (PQresultStatus(result)) {
        case PGRES_TUPLES_OK:
        case PGRES_SINGLE_TUPLE:
                return take_rows(batch, result);
        case PGRES_COMMAND_OK:
                return take_tag(batch, result);
        case PGRES_FATAL_ERROR:
                return take_refusal(batch, result);
        case PGRES_PIPELINE_ABORTED:
                return batch->refused ? 0 : fail_by_violation(batch);
        case PGRES_PIPELINE_SYNC:
                return take_synchronization(batch, connection);
        default:
                return fail_by_violation(batch);
        }
}

/* NULL follows the results of each command. */
static int take_end_of_command(struct postgresql_batch *batch, PGconn *connection)
{
        if (!batch->answered || batch->command == batch->n_commands)
                return fail_by_violation(batch);
        batch->answered = false;
        batch->command++;
        /* Rows of the next command come one by one, so the bounds hold before a result is complete. */
        (void)PQsetSingleRowMode(connection);
        return 0;
}

int postgresql_batch_take(struct postgresql_batch *batch, PGconn *connection)
{
        int r = 0;

        while (r == 0 && !PQisBusy(connection)) {
                PGresult *result = PQgetResult(connection);

                r = result ? take_result(batch, connection, result) : take_end_of_command(batch, connection);
                PQclear(result);
        }
        return r;
}
