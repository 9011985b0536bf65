/* SPDX-License-Identifier: MIT */
/* The locks that statements of a reader take in PostgreSQL. */
#pragma once

#include "frameworks/database_format.h"
#include "postgresql.h"

/* Checks that no statement that reads locks a row, as it gets no number of a transaction, or a table more
 * than any reader does. values: for $1. */
static inline void check_locks(const struct database_texts *texts, const char *values)
{
        const char *const parameters[] = {values, "1001"};
        PGconn *connection = PQconnectdb(postgresql_url);

        for (size_t i = 0; i < _DATABASE_QUESTION_MAX; i++) {
                int n = i == DATABASE_COUNTS ? 0 : i == DATABASE_QUEUES ? 2 : 1;

                /* GoodJob, which has no rescue, has no DATABASE_RELEASED. */
                if (!texts->questions[i])
                        continue;
                PQclear(PQexec(connection, "BEGIN READ ONLY"));
                PGresult *result =
                        PQexecParams(connection, texts->questions[i], n, NULL, parameters, NULL, NULL, 0);
                ck_assert_msg(PQresultStatus(result) == PGRES_TUPLES_OK, "%s", PQerrorMessage(connection));
                PQclear(result);
                result = PQexec(connection,
                                "SELECT coalesce(string_agg(DISTINCT mode, ' '), '') || coalesce("
                                "CAST(pg_current_xact_id_if_assigned() AS text), '')"
                                " FROM pg_locks WHERE pid = pg_backend_pid() AND locktype <> 'virtualxid'");
                ck_assert_str_eq(PQgetvalue(result, 0, 0), "AccessShareLock");
                PQclear(result);
                PQclear(PQexec(connection, "ROLLBACK"));
        }
        PQfinish(connection);
}
