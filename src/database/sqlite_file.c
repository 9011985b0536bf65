/* SPDX-License-Identifier: MIT */
/* Opens a SQLite file and takes away what sqmgr does not need of SQLite; see the header. */
#include "database/sqlite_file.h"
#include "database/database.h"
#include "io/clock.h"
#include "settings/database_url.h"
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

bool sqlite_identity_equal(const struct sqlite_identity *a, const struct sqlite_identity *b)
{
        return a->device == b->device && a->inode == b->inode;
}

static struct sqlite_identity identify(const char *path)
{
        struct stat status;

        if (stat(path, &status) < 0)
                return (struct sqlite_identity){0};
        return (struct sqlite_identity){.device = status.st_dev, .inode = status.st_ino};
}

/* Returns a URI, in which some characters of a path have a meaning; NULL if memory is short. */
static char *make_uri(const char *path)
{
        char *uri = NULL;
        size_t size;
        FILE *stream = open_memstream(&uri, &size);

        if (!stream)
                return NULL;
        fputs("file:", stream);
        for (; *path != '\0'; path++)
                if (strchr("?#%", *path))
                        fprintf(stream, "%%%02X", (unsigned)*path);
                else
                        fputc(*path, stream);
        /* Does not make a -shm file, which the workers could not write. */
        fputs("?readonly_shm=1", stream);
        bool failed = ferror(stream);
        if (fclose(stream) != 0 || failed) {
                free(uri);
                return NULL;
        }
        return uri;
}

int sqlite_path_make(const char *url, struct sqlite_path *ret)
{
        _cleanup_database_url_ struct database_url parsed = {0};
        int r = database_url_parse(url, &parsed, NULL);

        *ret = (struct sqlite_path){0};
        if (r < 0)
                return r;
        if (parsed.engine != DATABASE_SQLITE || !parsed.path)
                return -EINVAL;
        ret->uri = make_uri(parsed.path);
        if (!ret->uri)
                return -ENOMEM;
        ret->path = TAKE_PTR(parsed.path);
        return 0;
}

void sqlite_path_clear(struct sqlite_path *path)
{
        free(path->path);
        free(path->uri);
        *path = (struct sqlite_path){0};
}

static bool is_late(const struct sqlite_file *file)
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
        const struct sqlite_file *file = userdata;

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
static int harden(struct sqlite_file *file)
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
static int check_type(const char *path)
{
        struct stat status;

        if (stat(path, &status) < 0)
                return -errno;
        return S_ISREG(status.st_mode) ? 0 : S_ISDIR(status.st_mode) ? -EISDIR : -ENOTSUP;
}

/* The logs are beside the file that links lead to. */
static bool may_write(const char *path)
{
        _cleanup_free_ char *file = realpath(path, NULL);

        return file && faccessat(AT_FDCWD, file, R_OK | W_OK, AT_EACCESS) == 0 &&
               faccessat(AT_FDCWD, dirname(file), W_OK | X_OK, AT_EACCESS) == 0;
}

/* Sets the identity if the name still leads to the file that is open. */
static bool identify_open(struct sqlite_file *file, const char *path)
{
        int moved = 1;

        (void)sqlite3_file_control(file->handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
        file->identity = identify(path);
        return moved == 0 && file->identity.inode != 0;
}

int sqlite_file_open(struct sqlite_file *file, const struct sqlite_path *path, usec_t timeout, bool writes,
                     struct error_report *error)
{
        bool writable = may_write(path->path);
        int flags = SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE |
                    (writable ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);

        *file = (struct sqlite_file){
                .deadline = usec_add(clock_now(CLOCK_MONOTONIC), timeout),
                .writes = writes,
        };
        int r = check_type(path->path);
        if (r < 0) {
                error_report_set(error, "cannot open the database file: %s",
                                 r == -ENOTSUP ? "it is no regular file" : strerror(-r));
                return -EIO;
        }
        int code = sqlite3_open_v2(writable ? path->path : path->uri, &file->handle, flags, NULL);
        if (code == SQLITE_OK)
                code = harden(file);
        if (code != SQLITE_OK)
                sqlite_file_explain(file, code, error);
        else if (!identify_open(file, path->path))
                error_report_set(error, "the database file was replaced");
        else
                return 0;
        sqlite_file_close(file);
        return -EIO;
}

void sqlite_file_close(struct sqlite_file *file)
{
        (void)sqlite3_close(file->handle);
        file->handle = NULL;
}

void sqlite_file_explain(const struct sqlite_file *file, int code, struct error_report *error)
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
