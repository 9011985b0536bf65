/* SPDX-License-Identifier: MIT */
/* The program sqmgr-reader-sqlite, with the tables of Solid Queue. */
/* promises: P5 P8 */
#include "database_program.h"
#include <pwd.h>
#include <sqlite3.h>
#include <sys/wait.h>

static char folder[64], path[96], url[128];

static void execute(const char *sql)
{
        sqlite3 *handle;
        char *message = NULL;

        ck_assert_int_eq(sqlite3_open(path, &handle), SQLITE_OK);
        ck_assert_int_eq(sqlite3_busy_timeout(handle, 10000), SQLITE_OK);
        ck_assert_msg(sqlite3_exec(handle, sql, NULL, NULL, &message) == SQLITE_OK, "%s: %s", sql, message);
        ck_assert_int_eq(sqlite3_close(handle), SQLITE_OK);
}

static void make_tables(void)
{
        make_worker("solid_queue/sqlite.sql", execute);
}

static void start(void)
{
        start_reader(url, PATIENCE);
}

static void setup(void)
{
        snprintf(folder, sizeof(folder), "/tmp/test_sqlite.XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/queue.sqlite3", folder);
        snprintf(url, sizeof(url), "sqlite3:%s", path);
        begin_programs();
}

static void teardown(void)
{
        end_programs();
}

static const char *const modes[] = {"DELETE", "WAL"};

static void set_mode(int i)
{
        char sql[64];

        snprintf(sql, sizeof(sql), "PRAGMA journal_mode = %s", modes[i]);
        execute(sql);
}

TEST_LOOP(heartbeats_are_read_from_the_file, (int)ELEMENTSOF(modes))
{
        make_tables();
        set_mode(_i);
        start();
        run_until(is_up());
        ask();
        ck_assert_int_eq(answered.status, ANSWER_OK);
        ck_assert(answered.found);
        ck_assert_uint_eq(answered.concurrency, 3);
        uint64_t first = answered.sent_usec;
        execute("UPDATE solid_queue_processes SET last_heartbeat_at = '2026-11-27 06:01:00.5' WHERE id = 2");
        ask();
        ck_assert_uint_gt(answered.sent_usec, first);
        ck_assert_uint_eq(reader_connection_count(reader), 1);
        execute("DELETE FROM solid_queue_processes");
        ask();
        ck_assert_int_eq(answered.status, ANSWER_OK);
        ck_assert(!answered.found);
}

TEST(a_file_that_is_replaced_is_down_and_read_again)
{
        char other[128];

        make_tables();
        start();
        run_until(is_up());
        snprintf(other, sizeof(other), "%s.old", path);
        ck_assert_int_eq(rename(path, other), 0);
        make_tables();
        ask();
        ck_assert_int_eq(answered.status, ANSWER_LOST);
        run_until(downs > 0);
        run_until(is_up());
        ck_assert_uint_eq(reader_connection_count(reader), 2);
        ask();
        ck_assert(answered.found);
}

TEST(a_folder_that_appears_later_is_found)
{
        char other[96];

        make_tables();
        snprintf(other, sizeof(other), "%s.old", folder);
        ck_assert_int_eq(rename(folder, other), 0);
        start();
        run_until(downs > 0);
        ck_assert(strstr(why.text, "No such file"));
        ck_assert_int_eq(rename(other, folder), 0);
        run_until(is_up());
        ask();
        ck_assert(answered.found);
}

TEST(a_reader_that_its_user_kills_is_replaced)
{
        make_tables();
        start();
        for (unsigned i = 0; i < 3; i++) {
                run_until(is_up());
                unsigned before = downs;
                ck_assert_int_eq(kill(reader_pid(), SIGKILL), 0);
                run_until(downs > before);
        }
        run_until(is_up());
        ask();
        ck_assert(answered.found);
}

/* SIGBUS, at a shared memory that is no longer there. */
TEST(a_log_that_is_truncated_costs_a_process_at_most)
{
        char name[128];

        make_tables();
        set_mode(1);
        start();
        run_until(is_up());
        snprintf(name, sizeof(name), "%s-shm", path);
        for (unsigned i = 0; i < 20; i++) {
                FILE *file = fopen(name, "we");

                ck_assert_ptr_nonnull(file);
                ck_assert_int_eq(fclose(file), 0);
                if (is_up())
                        ask();
                else
                        run_until(is_up());
                (void)unlink(name);
        }
        run_until(is_up());
        ask();
}

TEST_MAIN("sqlite_process", .each = {setup, teardown}, .timeout_seconds = 120)
