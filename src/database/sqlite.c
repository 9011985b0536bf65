/* SPDX-License-Identifier: MIT */
/* The driver for SQLite.
 *
 * A user writes the file, and its schema is as untrusted as its rows: what the file says must cost bounded
 * memory and time, and runs nothing. Each batch opens the file and closes it again: between two batches sqmgr
 * holds no lock, and the last worker that closes a file in WAL mode finishes its log, as without sqmgr. */
#include "database/driver.h"
#include "io/clock.h"
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* Memory of SQLite in this process: one value of DATABASE_BYTES_MAX, and a copy that a function made of it,
 * with some to spare. */
#define HEAP_MAX_BYTES ((sqlite3_int64)128 << 20)
/* Instructions of SQLite's machine between two readings of the clock. Most take far less than a microsecond.
 */
#define CLOCK_INSTRUCTIONS 1000
#define BUSY_MSEC          10

/* A file, opened for one batch. */
struct file {
        sqlite3 *handle;
        usec_t deadline;
        bool writes;
};

/* The only database of the program. */
static char *path;            /* absolute; NULL: not known yet */
static char *uri;             /* opens the file to read it, and makes no file */
static struct stat connected; /* the file that was connected */

/* Returns a URI, in which some characters of a path have a meaning; NULL if memory is short. */
static char *make_uri(const char *at)
{
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        if (!stream)
                return NULL;
        fputs("file:", stream);
        for (; *at != '\0'; at++)
                if (strchr("?#%", *at))
                        fprintf(stream, "%%%02X", (unsigned)*at);
                else
                        fputc(*at, stream);
        /* Does not make a -shm file, which the workers could not write. */
        fputs("?readonly_shm=1", stream);
        bool failed = ferror(stream);
        if (fclose(stream) != 0 || failed)
                free(TAKE_PTR(text));
        return text;
}

/* Returns 0; -EINVAL if the URL names no file; or -ENOMEM. */
static int make_paths(const char *url)
{
        _cleanup_database_url_ struct database_url parsed = {0};
        int r = database_url_parse(url, &parsed, NULL);

        if (r < 0)
                return r;
        if (parsed.engine != DATABASE_SQLITE || !parsed.path)
                return -EINVAL;
        uri = make_uri(parsed.path);
        if (!uri)
                return -ENOMEM;
        path = TAKE_PTR(parsed.path);
        return 0;
}

static bool is_late(const struct file *file)
{
        return clock_now(CLOCK_MONOTONIC) >= file->deadline;
}

static int on_progress(void *userdata)
{
        return is_late(userdata);
}

static int on_busy(void *userdata, int times _unused_)
{
        if (is_late(userdata))
                return 0;
        (void)sqlite3_sleep(BUSY_MSEC);
        return 1;
}

/* The statements of a batch read and change rows. Anything else would be a fault of sqmgr. */
static int authorize(void *userdata, int action, const char *table, const char *column _unused_,
                     const char *schema _unused_, const char *view _unused_)
{
        const struct file *file = userdata;

        switch (action) {
        case SQLITE_SELECT:
        case SQLITE_READ:
        case SQLITE_FUNCTION:
        case SQLITE_RECURSIVE:
        case SQLITE_TRANSACTION:
                return SQLITE_OK;
        case SQLITE_INSERT:
        case SQLITE_UPDATE:
        case SQLITE_DELETE:
                return file->writes && strncasecmp(table, "sqlite_", 7) != 0 ? SQLITE_OK : SQLITE_DENY;
        default:
                return SQLITE_DENY;
        }
}

static const struct {
        int option, value;
} options[] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
               {SQLITE_DBCONFIG_ENABLE_VIEW, 0},    {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
               {SQLITE_DBCONFIG_ENABLE_FKEY, 0},    {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
               {SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0}};

static const struct {
        int limit, value;
} limits[] = {{SQLITE_LIMIT_LENGTH, (int)DATABASE_BYTES_MAX},
              {SQLITE_LIMIT_ATTACHED, 0},
              {SQLITE_LIMIT_COMPOUND_SELECT, 20},
              {SQLITE_LIMIT_EXPR_DEPTH, 200},
              {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1024},
              {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
              {SQLITE_LIMIT_VDBE_OP, 100 * 1000},
              {SQLITE_LIMIT_WORKER_THREADS, 0}};

static const char *modules[] = {"json_each", NULL};

/* Call before the schema is read, which is at the first statement that needs it. */
static int harden(struct file *file)
{
        sqlite3 *handle = file->handle;
        int r = SQLITE_OK;

        (void)sqlite3_hard_heap_limit64(HEAP_MAX_BYTES);
        (void)sqlite3_busy_handler(handle, on_busy, file);
        sqlite3_progress_handler(handle, CLOCK_INSTRUCTIONS, on_progress, file);
        FOREACH_ELEMENT(limit, limits)
                (void)sqlite3_limit(handle, limit->limit, limit->value);
        for (size_t i = 0; i < ELEMENTSOF(options) && r == SQLITE_OK; i++)
                r = sqlite3_db_config(handle, options[i].option, options[i].value, NULL);
        /* Virtual tables of a file read what the file says they do; json_each is none of a file. */
        if (r == SQLITE_OK)
                r = sqlite3_drop_modules(handle, modules);
        /* The log is written back by the workers, as without sqmgr. */
        if (r == SQLITE_OK)
                r = sqlite3_wal_autocheckpoint(handle, 0);
        /* The first use of json_each declares it, which authorize() would refuse. Memory that is mapped from
         * a file that its user truncates would end the process. */
        if (r == SQLITE_OK)
                r = sqlite3_exec(handle,
                                 "PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY; "
                                 "PRAGMA cell_size_check = ON; SELECT 1 FROM json_each('[]')",
                                 NULL, NULL, NULL);
        if (r == SQLITE_OK && !file->writes)
                r = sqlite3_exec(handle, "PRAGMA query_only = ON", NULL, NULL, NULL);
        return r == SQLITE_OK ? sqlite3_set_authorizer(handle, authorize, file) : r;
}

/* A file that is no regular one could make its reader wait. Returns 0 or -errno. */
static int check_type(void)
{
        struct stat status;

        if (stat(path, &status) < 0)
                return -errno;
        return S_ISREG(status.st_mode) ? 0 : S_ISDIR(status.st_mode) ? -EISDIR : -ENOTSUP;
}

/* The logs are beside the file that links lead to. */
static bool may_write(void)
{
        _cleanup_free_ char *file = realpath(path, NULL);

        return file && faccessat(AT_FDCWD, file, R_OK | W_OK, AT_EACCESS) == 0 &&
               faccessat(AT_FDCWD, dirname(file), W_OK | X_OK, AT_EACCESS) == 0;
}

/* Sets the sentence for an error code of SQLite. */
static void explain(const struct file *file, int code, struct error_report *error)
{
        const char *said = file->handle ? sqlite3_errmsg(file->handle) : sqlite3_errstr(code);
        int number = file->handle ? sqlite3_system_errno(file->handle) : 0;

        switch (code & 0xff) {
        case SQLITE_INTERRUPT:
                error_report_set(error, "the statements did not end within the time limit");
                break;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
                error_report_set(error, "another process kept the database file locked beyond the time "
                                        "limit");
                break;
        case SQLITE_NOMEM:
                error_report_set(error, "the statements need more memory than sqmgr allows");
                break;
        case SQLITE_NOTADB:
                error_report_set(error, "the file is no SQLite database, or is encrypted");
                break;
        case SQLITE_CORRUPT:
                error_report_set(error, "the database file is damaged");
                break;
        case SQLITE_READONLY:
                error_report_quote(error, said,
                                   "the user of sqmgr may not write the database file or its "
                                   "folder");
                break;
        case SQLITE_CANTOPEN:
        case SQLITE_IOERR:
        case SQLITE_FULL:
                error_report_quote(error, said, "cannot use the database file: %s",
                                   number != 0 ? strerror(number) : "SQLite gives a reason");
                break;
        default:
                error_report_quote(error, said, "the database refused a statement");
                break;
        }
}

static void close_file(struct file *file)
{
        (void)sqlite3_close(file->handle);
}

/* Opens a file that exists. Where the user of this process may not write, the file is opened to be read, and
 * no log is made beside it. Locks of others are waited for, and statements run, for timeout at most.
 * writes: statements may change rows of tables; otherwise nothing. *ret_status: of the file that is open, to
 * which the name leads. Returns false with the error. */
static bool open_file(struct file *file, usec_t timeout, bool writes, struct stat *ret_status,
                      struct error_report *error)
{
        bool writable = may_write();
        int flags = SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE |
                    (writable ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
        int moved = 1;

        *file = (struct file){
                .deadline = usec_add(clock_now(CLOCK_MONOTONIC), timeout),
                .writes = writes,
        };
        int r = check_type();
        if (r < 0) {
                error_report_set(error, "cannot open the database file: %s",
                                 r == -ENOTSUP ? "it is no regular file" : strerror(-r));
                return false;
        }
        int code = sqlite3_open_v2(writable ? path : uri, &file->handle, flags, NULL);
        if (code == SQLITE_OK)
                code = harden(file);
        if (code == SQLITE_OK)
                (void)sqlite3_file_control(file->handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
        if (code == SQLITE_OK && moved == 0 && stat(path, ret_status) == 0)
                return true;
        if (code != SQLITE_OK)
                explain(file, code, error);
        else
                error_report_set(error, "the database file was replaced");
        close_file(file);
        return false;
}

static int bind_parameters(sqlite3_stmt *statement, const struct database_statement *from)
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

struct batch {
        const struct driver_batch *asked;
        size_t rows, bytes;
        int stopped; /* -errno, if a row ended the batch; -EOVERFLOW: for a broken bound */
};

/* Returns 0, -EOVERFLOW for a broken bound, -ENOMEM, or what row() returns. */
static int hand_out(struct batch *batch, size_t i, sqlite3_stmt *statement, struct field *values)
{
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
        return batch->asked->row(i, &row, batch->asked->userdata);
}

/* Returns an error code of SQLite. */
static int step_all(struct batch *batch, size_t i, sqlite3_stmt *statement)
{
        size_t n = (size_t)sqlite3_column_count(statement);
        _cleanup_free_ struct field *values = calloc(MAX(n, (size_t)1), sizeof(*values));
        int r = values ? SQLITE_ROW : SQLITE_NOMEM;

        while (r == SQLITE_ROW && batch->stopped == 0) {
                r = sqlite3_step(statement);
                if (r == SQLITE_ROW)
                        batch->stopped = hand_out(batch, i, statement, values);
        }
        return r == SQLITE_DONE ? SQLITE_OK : r == SQLITE_ROW ? SQLITE_ABORT : r;
}

static int run_statement(struct batch *batch, sqlite3 *handle, size_t i)
{
        const struct database_statement *from = &batch->asked->statements[i];
        sqlite3_stmt *statement = NULL;

        int r = sqlite3_prepare_v2(handle, from->sql, -1, &statement, NULL);
        if (r == SQLITE_OK)
                r = bind_parameters(statement, from);
        if (r == SQLITE_OK)
                r = step_all(batch, i, statement);
        /* Keeps the message of the error. */
        (void)sqlite3_finalize(statement);
        return r;
}

/* A batch that fails is rolled back as the file is closed. */
static int run_statements(struct batch *batch, sqlite3 *handle)
{
        int r = sqlite3_exec(handle, batch->asked->writes ? "BEGIN IMMEDIATE" : "BEGIN", NULL, NULL, NULL);

        for (size_t i = 0; r == SQLITE_OK && i < batch->asked->n; i++)
                r = run_statement(batch, handle, i);
        return r == SQLITE_OK ? sqlite3_exec(handle, "COMMIT", NULL, NULL, NULL) : r;
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

enum database_result driver_run(const struct database_settings *settings, const struct driver_batch *asked,
                                struct error_report *error)
{
        struct batch batch = {.asked = asked};
        struct stat status;
        struct file file;

        if (!open_file(&file, settings->timeout, asked->writes, &status, error))
                return DATABASE_LOST;
        if (status.st_dev != connected.st_dev || status.st_ino != connected.st_ino) {
                error_report_set(error, "the database file was replaced");
                close_file(&file);
                return DATABASE_LOST;
        }
        int code = run_statements(&batch, file.handle);
        if (batch.stopped == -EOVERFLOW)
                error_report_set(error, "the database has more rows or bytes than sqmgr accepts");
        else if (batch.stopped < 0)
                error_report_set(error, "cannot use the answer of the database: %s",
                                 strerror(-batch.stopped));
        else if (code != SQLITE_OK)
                explain(&file, code, error);
        close_file(&file);
        return code == SQLITE_OK                                       ? DATABASE_DONE
               : batch.stopped == 0 && is_refusal(code, asked->writes) ? DATABASE_REFUSED
                                                                       : DATABASE_LOST;
}

enum driver_outcome driver_connect(const struct database_settings *settings, int *ret_fd,
                                   struct error_report *error)
{
        struct file file;
        int r = path ? 0 : make_paths(settings->url);

        *ret_fd = -1;
        if (r < 0) {
                error_report_set(error, "cannot use the URL: %s", strerror(-r));
                return DRIVER_FAILED;
        }
        if (!open_file(&file, settings->timeout, false, &connected, error))
                return DRIVER_FAILED;
        int code = sqlite3_exec(file.handle, settings->probe, NULL, NULL, NULL);
        if (code != SQLITE_OK)
                explain(&file, code, error);
        if (is_refusal(code, false))
                snprintf(error->text, sizeof(error->text), DRIVER_NO_TABLES);
        close_file(&file);
        return code == SQLITE_OK ? DRIVER_CONNECTED : DRIVER_FAILED;
}

bool driver_check(struct error_report *error _unused_)
{
        return true;
}

void driver_close(void)
{
}
