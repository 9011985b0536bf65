/* SPDX-License-Identifier: MIT */
/* A reader of Solid Queue's real tables in SQLite: its answers, and rescues of jobs. */
/* promises: P1 P5 */
#include "tables.h"
#include <pthread.h>
#include <sqlite3.h>

#define AGO "strftime('%%Y-%%m-%%d %%H:%%M:%%f000', 'now', -(%.*s) || ' seconds')"

static char folder[64], file[96], database_url[128];

static sqlite3 *open_handle(void)
{
        sqlite3 *handle;

        ck_assert_int_eq(sqlite3_open(file, &handle), SQLITE_OK);
        ck_assert_int_eq(sqlite3_busy_timeout(handle, 20000), SQLITE_OK);
        ck_assert_int_eq(sqlite3_exec(handle, "PRAGMA foreign_keys = ON", NULL, NULL, NULL), SQLITE_OK);
        return handle;
}

static void execute_on(sqlite3 *handle, const char *sql)
{
        char *message = NULL;

        ck_assert_msg(sqlite3_exec(handle, sql, NULL, NULL, &message) == SQLITE_OK, "%s: %s", sql, message);
}

static void execute_sql(const char *sql)
{
        sqlite3 *handle = open_handle();

        execute_on(handle, sql);
        ck_assert_int_eq(sqlite3_close(handle), SQLITE_OK);
}

static char *value_of_sql(const char *sql)
{
        sqlite3 *handle = open_handle();
        sqlite3_stmt *statement;
        char *text = NULL;

        ck_assert_msg(sqlite3_prepare_v2(handle, sql, -1, &statement, NULL) == SQLITE_OK, "%s: %s", sql,
                      sqlite3_errmsg(handle));
        if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0))
                text = strdup((const char *)sqlite3_column_text(statement, 0));
        ck_assert_int_eq(sqlite3_finalize(statement), SQLITE_OK);
        ck_assert_int_eq(sqlite3_close(handle), SQLITE_OK);
        return text;
}

static void begin_database(void)
{
        char *tables = tables_read("solid_queue/sqlite.sql");

        unit_make_folder(folder);
        snprintf(file, sizeof(file), "%s/queue.sqlite3", folder);
        snprintf(database_url, sizeof(database_url), "sqlite3:%s", file);
        execute_sql("PRAGMA journal_mode = WAL");
        execute_sql(tables);
        free(tables);
}

static void end_database(void)
{
        unit_remove_tree(folder);
}

#include "solid_queue_cases.h"

/* Tests are sorted by their lines, whatever the file. */
TEST_FIXTURE(begin_cases, end_cases)

/* Another connection, which holds the database until it commits. */
static sqlite3 *holder;

static void hold(const char *sql)
{
        holder = open_handle();
        execute_on(holder, "BEGIN IMMEDIATE");
        char *text = timed(sql);
        execute_on(holder, text);
        free(text);
}

static void *commit_later(void *unused _unused_)
{
        (void)usleep(300000);
        execute_on(holder, "COMMIT");
        (void)sqlite3_close(holder);
        return NULL;
}

static const char *const rivals[] = {FAIL_CLAIM, FINISH_CLAIM};

/* Solid Queue fails or finishes the job in a transaction that is under way: the rescue waits, and leaves the
 * job. */
TEST_LOOP(a_rescue_behind_solid_queue_leaves_the_job, ELEMENTSOF(rivals))
{
        const char *entry = entry_of_job();
        pthread_t thread;

        hold(rivals[_i]);
        struct answer *requeue = ask_requeue_of(UNIT, WORKER, entry, true, 2);
        ck_assert_int_eq(pthread_create(&thread, NULL, commit_later, NULL), 0);
        assert_rescue(requeue, RESCUE_LEFT, 0);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        assert_value("SELECT count(*) FROM solid_queue_ready_executions WHERE job_id = 1", "0");
        assert_value("SELECT arguments FROM solid_queue_jobs WHERE id = 1",
                     "{\"job_class\":\"ReportJob\",\"arguments\":[1]}");
}

TEST_MAIN("solid_queue_sqlite")
