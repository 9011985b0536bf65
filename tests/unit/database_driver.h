/* SPDX-License-Identifier: MIT */
/* A database on the loop of the test, by its client and its helper program, and what its batches give. */
#pragma once

#include "database_program.h"

#define PATIENCE (60 * USEC_PER_SEC)
#define SHORT    (500 * USEC_PER_MSEC)

static struct database *database;
static unsigned states[_DATABASE_STATE_MAX];
static struct error_report why; /* of the state */

/* The rows and the result of a batch. */
static struct {
        unsigned done;
        enum database_result result;
        struct error_report error;
        char text[4096]; /* values: `statement:value,value;` */
        size_t rows, bytes;
        int stop; /* what row() returns */
        bool frees, repeats;
} got;

static inline void on_state(struct database *whose, enum database_state state,
                            const struct error_report *error, void *userdata _unused_)
{
        ck_assert_uint_eq(state, database_state(whose));
        ck_assert_ptr_eq(error, database_error(whose));
        states[state]++;
        why = error ? *error : (struct error_report){0};
}

static inline int on_row(size_t statement, const struct database_row *row, void *userdata _unused_)
{
        size_t used = strlen(got.text);

        if (got.frees)
                database = database_free(database);
        used += (size_t)snprintf(got.text + used, sizeof(got.text) - used, "%zu:", statement);
        for (size_t i = 0; i < row->n && used < sizeof(got.text); i++) {
                const struct field *value = &row->values[i];

                ck_assert(!value->text || value->text[value->len] == '\0');
                used += (size_t)snprintf(got.text + used, sizeof(got.text) - used, "%s%.40s",
                                         i == 0 ? "" : ",", value->text ?: "NULL");
                got.bytes += value->len;
        }
        if (used < sizeof(got.text))
                snprintf(got.text + used, sizeof(got.text) - used, ";");
        got.rows++;
        return got.stop;
}

static const struct database_batch_ops batch_ops;

static inline void on_done(enum database_result result, const struct error_report *error,
                           void *userdata _unused_)
{
        static const struct database_statement again = {.sql = "SELECT 'again'"};

        ck_assert((result == DATABASE_DONE) == !error);
        got.done++;
        got.result = result;
        got.error = error ? *error : (struct error_report){0};
        if (got.repeats) {
                got.repeats = false;
                ck_assert_int_eq(database_run(database, &again, 1, false, &batch_ops, NULL), 0);
        }
}

static const struct database_batch_ops batch_ops = {.row = on_row, .done = on_done};

static inline void setup_alone(void)
{
        begin_programs();
        memset(&got, 0, sizeof(got));
        memset(states, 0, sizeof(states));
}

static inline void teardown_alone(void)
{
        database = database_free(database);
        end_programs();
}

static inline bool is_up(void)
{
        return database_state(database) == DATABASE_CONNECTED;
}

static inline void open_url(const char *url, usec_t timeout)
{
        const struct database_settings settings = {
                .engine = strncmp(url, "sqlite3:", 8) == 0 ? DATABASE_SQLITE : DATABASE_POSTGRESQL,
                .starter = &helpers.starter,
                .url = url,
                .timeout = timeout,
                .probe = "SELECT id, name FROM t LIMIT 1"};
        static const struct database_ops ops = {.state = on_state};

        ck_assert_int_eq(database_new(event, &settings, &ops, NULL, &database), 0);
        ck_assert_int_eq(database_state(database), DATABASE_CONNECTING);
}

static inline void begin(const struct database_statement *statements, size_t n, bool writes)
{
        unsigned before = got.done;

        got.text[0] = '\0';
        got.rows = got.bytes = 0;
        ck_assert_int_eq(database_run(database, statements, n, writes, &batch_ops, NULL), 0);
        ck_assert_uint_eq(got.done, before);
}

static inline void run_list(const struct database_statement *statements, size_t n, bool writes)
{
        unsigned before = got.done;

        begin(statements, n, writes);
        run_until(got.done > before);
}

static inline void run(const char *sql, bool writes)
{
        const struct database_statement statement = {.sql = sql};

        run_list(&statement, 1, writes);
}

static inline void expect_rows(const char *sql, const char *rows)
{
        run(sql, false);
        ck_assert_str_eq(got.text, rows);
}

static inline void expect_lost(const char *sql)
{
        run(sql, false);
        ck_assert_int_eq(got.result, DATABASE_LOST);
}
