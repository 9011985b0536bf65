/* SPDX-License-Identifier: MIT */
/* The driver for SQLite.
 *
 * A user writes the file, and its schema is as untrusted as its rows. Each batch opens the file and closes it
 * again: between two batches sqmgr holds no lock, and the last worker that closes a file in WAL mode finishes
 * its log, as without sqmgr. A batch blocks the loop, for BATCH_MAX_USEC at most unless the disk hangs. */
#include "database/database.h"
#include "database/sqlite_file.h"
#include "io/clock.h"
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

/* Pause before the file is tried again. */
#define RETRY_USEC USEC_PER_SEC

/* A copy of a statement. */
struct statement {
        char *sql;
        char **parameters;
        size_t n;
};

struct batch {
        struct statement *statements;
        size_t n;
        bool writes;
        const struct database_batch_ops *ops; /* NULL: no batch, or done() was called */
        void *userdata;
        size_t rows, bytes;
};

struct database {
        struct database_shown shown; /* the first member */
        sd_event *event;
        sd_event_source *work; /* runs the batch, or opens the file */
        struct sqlite_path path;
        char *probe;
        usec_t timeout;

        struct sqlite_identity identity; /* of the file that is connected */
        struct batch batch;
        bool running;     /* the statements of the batch are in use */
        unsigned entered; /* number of enter() without leave() */
};

static void clear_batch(struct batch *batch)
{
        for (size_t i = 0; batch->statements && i < batch->n; i++) {
                struct statement *statement = &batch->statements[i];

                for (size_t k = 0; statement->parameters && k < statement->n; k++)
                        free(statement->parameters[k]);
                free(statement->parameters);
                free(statement->sql);
        }
        free(batch->statements);
        *batch = (struct batch){0};
}

static int copy_statement(struct statement *to, const struct database_statement *from)
{
        to->sql = strdup(from->sql);
        to->parameters = calloc(MAX(from->n, (size_t)1), sizeof(*to->parameters));
        if (!to->sql || !to->parameters)
                return -ENOMEM;
        to->n = from->n;
        for (size_t i = 0; i < from->n; i++)
                if (from->parameters[i] && !(to->parameters[i] = strdup(from->parameters[i])))
                        return -ENOMEM;
        return 0;
}

static void destroy(struct database *database)
{
        sd_event_source_disable_unref(database->work);
        sd_event_unref(database->event);
        clear_batch(&database->batch);
        sqlite_path_clear(&database->path);
        free(database->probe);
        free(database);
}

/* Enclose the calls of callbacks, which may free the database: it stays until the outermost leave(). */
static void enter(struct database *database)
{
        database->entered++;
}

static void leave(struct database *database)
{
        if (--database->entered == 0 && database->shown.freed)
                destroy(database);
}

/* Has on_work() called after this time. Neither call fails for a source of our own. */
static void arm(struct database *database, usec_t after)
{
        usec_t at = after == 0 ? 0 : usec_add(clock_now(CLOCK_MONOTONIC), after);

        (void)sd_event_source_set_time(database->work, at);
        (void)sd_event_source_set_enabled(database->work, SD_EVENT_ONESHOT);
}

/* Ends the batch, if there is one. The next one may run within this call. */
static void finish_batch(struct database *database, enum database_result result,
                         const struct error_report *error)
{
        const struct database_batch_ops *ops = TAKE_PTR(database->batch.ops);
        void *userdata = database->batch.userdata;

        if (!database->running)
                clear_batch(&database->batch);
        if (ops)
                ops->done(result, result == DATABASE_DONE ? NULL : error, userdata);
}

static int bind_parameters(sqlite3_stmt *statement, const struct statement *from)
{
        char name[24];
        int r = SQLITE_OK;

        for (size_t i = 0; i < from->n && r == SQLITE_OK; i++) {
                snprintf(name, sizeof(name), "$%zu", i + 1);
                int at = sqlite3_bind_parameter_index(statement, name);

                if (at > 0)
                        r = sqlite3_bind_text(statement, at, from->parameters[i], -1, SQLITE_STATIC);
        }
        return r;
}

/* Returns 0, -EOVERFLOW for a broken bound, -ENOMEM, or what row() returns. */
static int hand_out(struct database *database, size_t i, sqlite3_stmt *statement, struct field *values)
{
        struct batch *batch = &database->batch;
        struct database_row row = {.values = values, .n = (size_t)sqlite3_column_count(statement)};

        if (++batch->rows > DATABASE_ROWS_MAX)
                return -EOVERFLOW;
        for (size_t k = 0; k < row.n; k++) {
                bool null = sqlite3_column_type(statement, (int)k) == SQLITE_NULL;
                const char *text = (const char *)sqlite3_column_text(statement, (int)k);

                if (!null && !text)
                        return -ENOMEM;
                values[k] = (struct field){
                        .text = text,
                        .len = text ? (size_t)sqlite3_column_bytes(statement, (int)k) : 0,
                };
                batch->bytes += values[k].len;
        }
        if (batch->bytes > DATABASE_BYTES_MAX)
                return -EOVERFLOW;
        return batch->ops->row(i, &row, batch->userdata);
}

/* Returns an error code of SQLite, with *ret_error, -errno, if a row ends the batch. */
static int step_all(struct database *database, size_t i, sqlite3_stmt *statement, int *ret_error)
{
        size_t n = (size_t)sqlite3_column_count(statement);
        _cleanup_free_ struct field *values = calloc(MAX(n, (size_t)1), sizeof(*values));
        int r = values ? SQLITE_ROW : SQLITE_NOMEM;

        while (r == SQLITE_ROW && *ret_error == 0 && !database->shown.freed) {
                r = sqlite3_step(statement);
                if (r == SQLITE_ROW)
                        *ret_error = hand_out(database, i, statement, values);
        }
        return r == SQLITE_DONE ? SQLITE_OK : r == SQLITE_ROW ? SQLITE_ABORT : r;
}

/* As step_all(). */
static int run_statement(struct database *database, sqlite3 *file, size_t i, int *ret_error)
{
        const struct statement *from = &database->batch.statements[i];
        sqlite3_stmt *statement = NULL;

        int r = sqlite3_prepare_v2(file, from->sql, -1, &statement, NULL);
        if (r == SQLITE_OK)
                r = bind_parameters(statement, from);
        if (r == SQLITE_OK)
                r = step_all(database, i, statement, ret_error);
        /* Keeps the message of the error. */
        (void)sqlite3_finalize(statement);
        return r;
}

/* A batch that fails is rolled back as the file is closed. */
static int run_statements(struct database *database, sqlite3 *file, int *ret_error)
{
        const struct batch *batch = &database->batch;
        int r = sqlite3_exec(file, batch->writes ? "BEGIN IMMEDIATE" : "BEGIN", NULL, NULL, NULL);

        for (size_t i = 0; r == SQLITE_OK && i < batch->n; i++)
                r = run_statement(database, file, i, ret_error);
        return r == SQLITE_OK ? sqlite3_exec(file, "COMMIT", NULL, NULL, NULL) : r;
}

/* Returns true if the database has refused the statement, and is usable. */
static bool is_refusal(int code, bool writes)
{
        switch (code & 0xff) {
        case SQLITE_ERROR:
        case SQLITE_CONSTRAINT:
        case SQLITE_MISMATCH:
        case SQLITE_AUTH:
        case SQLITE_TOOBIG:
                return true;
        case SQLITE_READONLY:
                return writes;
        default:
                return false;
        }
}

/* Returns the result of a batch with its error. */
static enum database_result run_batch(struct database *database, struct error_report *error)
{
        struct batch *batch = &database->batch;
        struct sqlite_file file;
        int stopped = 0;

        int r = sqlite_file_open(&file, &database->path, database->timeout, batch->writes, error);
        if (r < 0)
                return DATABASE_LOST;
        if (!sqlite_identity_equal(&file.identity, &database->identity)) {
                error_report_set(error, "the database file was replaced");
                sqlite_file_close(&file);
                return DATABASE_LOST;
        }
        int code = run_statements(database, file.handle, &stopped);
        if (stopped == -EOVERFLOW)
                error_report_set(error, "the database has more rows or bytes than sqmgr accepts");
        else if (stopped < 0)
                error_report_set(error, "cannot use the answer of the database: %s", strerror(-stopped));
        else if (code != SQLITE_OK)
                sqlite_file_explain(&file, code, error);
        sqlite_file_close(&file);
        return code == SQLITE_OK                                 ? DATABASE_DONE
               : stopped == 0 && is_refusal(code, batch->writes) ? DATABASE_REFUSED
                                                                 : DATABASE_LOST;
}

/* Opens the file, and runs the probe. Returns 0, or -EIO with the error. */
static int probe(struct database *database, struct error_report *error)
{
        struct sqlite_file file;

        int r = sqlite_file_open(&file, &database->path, database->timeout, false, error);
        if (r < 0)
                return r;
        int code = sqlite3_exec(file.handle, database->probe, NULL, NULL, NULL);
        if (code == SQLITE_OK)
                database->identity = file.identity;
        else
                sqlite_file_explain(&file, code, error);
        if (is_refusal(code, false))
                snprintf(error->text, sizeof(error->text), DATABASE_NO_TABLES);
        sqlite_file_close(&file);
        return code == SQLITE_OK ? 0 : -EIO;
}

static void connect_file(struct database *database)
{
        struct error_report error = {0};

        if (probe(database, &error) < 0) {
                arm(database, RETRY_USEC);
                if (database_change_state(database, DATABASE_DOWN, &error))
                        database_report_state(database);
                return;
        }
        database->shown.connections++;
        (void)database_change_state(database, DATABASE_CONNECTED, NULL);
        database_report_state(database);
}

static void work_off(struct database *database)
{
        usec_t begun_at = clock_now(CLOCK_MONOTONIC);
        struct error_report error = {0};

        database->running = true;
        enum database_result result = run_batch(database, &error);
        database->running = false;
        database->shown.rtt_usec = usec_sub(clock_now(CLOCK_MONOTONIC), begun_at);
        if (database->shown.freed)
                return;
        if (result != DATABASE_LOST) {
                finish_batch(database, result, &error);
                return;
        }
        database->shown.rtt_usec = 0;
        arm(database, RETRY_USEC);
        bool changed = database_change_state(database, DATABASE_DOWN, &error);
        finish_batch(database, result, &error);
        if (changed)
                database_report_state(database);
}

static int on_work(sd_event_source *source _unused_, uint64_t due _unused_, void *userdata)
{
        struct database *database = userdata;

        enter(database);
        if (database->batch.ops)
                work_off(database);
        else if (database->shown.state != DATABASE_CONNECTED)
                connect_file(database);
        leave(database);
        return 0;
}

int database_new(sd_event *event, const struct database_settings *settings, const struct database_ops *ops,
                 void *userdata, struct database **ret)
{
        struct database *database = calloc(1, sizeof(*database));

        if (!database)
                return -ENOMEM;
        *database = (struct database){
                .event = sd_event_ref(event),
                .shown = {.ops = ops, .userdata = userdata, .state = DATABASE_CONNECTING},
                .probe = strdup(settings->probe),
                .timeout = settings->timeout,
        };
        int r = database->probe ? sqlite_path_make(settings->url, &database->path) : -ENOMEM;
        if (r >= 0)
                r = sd_event_add_time(event, &database->work, CLOCK_MONOTONIC, 0, 1, on_work, database);
        if (r < 0) {
                destroy(database);
                return r;
        }
        *ret = database;
        return 0;
}

struct database *database_free(struct database *database)
{
        static const struct error_report ended = {.text = "the connection was closed"};

        if (!database || database->shown.freed)
                return NULL;
        enter(database);
        database->shown.freed = true;
        (void)sd_event_source_set_enabled(database->work, SD_EVENT_OFF);
        finish_batch(database, DATABASE_LOST, &ended);
        leave(database);
        return NULL;
}

int database_run(struct database *database, const struct database_statement *statements, size_t n,
                 bool writes, const struct database_batch_ops *ops, void *userdata)
{
        struct batch batch = {.n = n, .writes = writes, .ops = ops, .userdata = userdata};
        int r = 0;

        if (database->shown.state != DATABASE_CONNECTED || database->shown.freed)
                return -ENOTCONN;
        if (database->batch.ops)
                return -EBUSY;
        batch.statements = calloc(MAX(n, (size_t)1), sizeof(*batch.statements));
        if (!batch.statements)
                return -ENOMEM;
        for (size_t i = 0; i < n && r == 0; i++)
                r = copy_statement(&batch.statements[i], &statements[i]);
        if (r < 0) {
                clear_batch(&batch);
                return r;
        }
        database->batch = batch;
        arm(database, 0);
        return 0;
}
