/* SPDX-License-Identifier: MIT */
/* The program sqmgr-sqlite, with files in a private folder: modes of the log, locks of others, limits, files
 * that are damaged, hostile, replaced or missing. */
/* promises: P5 P8 */
#include "sqlite_folder.h"

static void open_database(void)
{
        open_within(PATIENCE);
        run_until(states[DATABASE_CONNECTED] > 0);
}

TEST_LOOP(a_batch_reads_values_as_texts, (int)ELEMENTSOF(modes))
{
        const char *const parameters[] = {"2", NULL, "two"};
        const struct database_statement statements[] = {
                {.sql = "SELECT id, name, at, $2, 1.5 FROM t WHERE id = $1 AND name = $3 AND $1 = '2'",
                 .parameters = parameters,
                 .n = 3},
                {.sql = "SELECT count(*) FROM t"},
                {.sql = "SELECT 1 WHERE 0"},
        };

        execute(modes[_i]);
        open_database();
        run_list(statements, ELEMENTSOF(statements), false);
        ck_assert_int_eq(got.result, DATABASE_DONE);
        ck_assert_str_eq(got.text, "0:2,two,2026-11-27 06:00:00.123456,NULL,1.5;1:2;");
        ck_assert_uint_eq(database_connection_count(database), 1);
        ck_assert(database_rtt_usec(database) > 0);
}

TEST_LOOP(a_batch_that_writes_is_carried_out_whole_or_not_at_all, (int)ELEMENTSOF(modes))
{
        const struct database_statement bad[] = {{.sql = "DELETE FROM t WHERE id = 1"},
                                                 {.sql = "INSERT INTO t VALUES (2, 'again', NULL)"}};
        const struct database_statement good[] = {
                {.sql = "DELETE FROM t WHERE id = 1"},
                {.sql = "INSERT INTO t VALUES (3, 'three', NULL) RETURNING id"}};

        execute(modes[_i]);
        open_database();
        run_list(bad, ELEMENTSOF(bad), true);
        ck_assert_int_eq(got.result, DATABASE_REFUSED);
        ck_assert_int_eq(database_state(database), DATABASE_CONNECTED);
        expect_rows("SELECT id FROM t", "0:1;0:2;");
        run_list(good, ELEMENTSOF(good), true);
        ck_assert_int_eq(got.result, DATABASE_DONE);
        ck_assert_str_eq(got.text, "1:3;");
        expect_rows("SELECT id FROM t", "0:2;0:3;");
}

/* Statements that are refused, even in a batch that writes. */
static const struct {
        const char *sql;
        bool writes;
} forbidden[] = {
        {"INSERT INTO t VALUES (4, 'four', NULL)", false},
        {"DELETE FROM t", false},
        {"ATTACH '/etc/passwd' AS other", true},
        {"PRAGMA query_only = OFF", false},
        {"PRAGMA writable_schema = ON", true},
        {"CREATE TABLE other (id)", true},
        {"CREATE TEMP TABLE other (id)", true},
        {"DROP TABLE t", true},
        {"DELETE FROM sqlite_schema", true},
        {"SELECT load_extension('/tmp/x.so')", true},
        {"VACUUM", true},
        {"COMMIT; BEGIN", true},
        {"SELECT * FROM no_such_table", false},
        {"SELECT * FROM dbstat", false},
        {"SELECT * FROM pragma_table_info('t')", true},
};

TEST_LOOP(a_batch_does_nothing_but_read_and_change_rows, (int)ELEMENTSOF(forbidden))
{
        open_database();
        run(forbidden[_i].sql, forbidden[_i].writes);
        ck_assert_msg(got.result != DATABASE_DONE, "%s", forbidden[_i].sql);
        run_until(database_state(database) == DATABASE_CONNECTED);
        expect_rows("SELECT id FROM t", "0:1;0:2;");
}

/* SQL that statements of sqmgr use is permitted. */
TEST(a_batch_may_take_lists_as_json_and_count)
{
        const char *const parameters[] = {"[\"two\", \"three\"]"};
        const struct database_statement statements[] = {
                {.sql = "SELECT id FROM t WHERE name IN (SELECT value FROM json_each($1))",
                 .parameters = parameters,
                 .n = 1},
                {.sql = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 3) "
                        "SELECT sum(i) FROM n"},
                {.sql = "SELECT length(strftime('%Y-%m-%d %H:%M:%f', 'now'))"},
        };

        open_database();
        run_list(statements, ELEMENTSOF(statements), false);
        ck_assert_str_eq(got.text, "0:2;1:6;2:23;");
}

TEST(one_batch_runs_at_a_time_and_none_without_a_connection)
{
        const struct database_statement statement = {.sql = "SELECT 1"};

        open_within(PATIENCE);
        ck_assert_int_eq(database_run(database, &statement, 1, false, &batch_ops, NULL), -ENOTCONN);
        run_until(states[DATABASE_CONNECTED] > 0);
        ck_assert_int_eq(database_run(database, &statement, 1, false, &batch_ops, NULL), 0);
        ck_assert_int_eq(database_run(database, &statement, 1, false, &batch_ops, NULL), -EBUSY);
        database = database_free(database);
        ck_assert_uint_eq(got.done, 1);
        ck_assert_int_eq(got.result, DATABASE_LOST);
}

TEST(a_row_may_end_the_batch_or_the_connection)
{
        open_database();
        got.stop = -EBADMSG;
        expect_lost("SELECT id FROM t");
        ck_assert_uint_eq(got.rows, 1);
        run_until(database_connection_count(database) == 2);
        got.stop = 0;
        got.frees = true;
        const char *const parameters[] = {"1"};
        const struct database_statement statement = {
                .sql = "SELECT id FROM t WHERE id >= $1", .parameters = parameters, .n = 1};
        run_list(&statement, 1, false);
        ck_assert_ptr_null(database);
        ck_assert_uint_eq(got.rows, 1);
        ck_assert_int_eq(got.result, DATABASE_LOST);
}

/* Statements whose rows or bytes exceed a bound. */
static const char *const floods[] = {
        "SELECT a.id FROM big a, big b, big c, big d, big e, big f",
        "SELECT hex(zeroblob(9000000)) FROM t",
        "SELECT hex(zeroblob(20000000))",
        "SELECT name FROM big ORDER BY name || id",
};

TEST_LOOP(rows_and_bytes_are_bounded, (int)ELEMENTSOF(floods))
{
        execute("CREATE TABLE big (id INTEGER PRIMARY KEY, name TEXT);"
                "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 10)"
                "INSERT INTO big SELECT i, hex(zeroblob(8000000)) FROM n");
        open_database();
        run(floods[_i], false);
        ck_assert_msg(got.result != DATABASE_DONE, "%s", floods[_i]);
        ck_assert_msg(got.rows <= DATABASE_ROWS_MAX && got.bytes <= DATABASE_BYTES_MAX, "%s", floods[_i]);
        run_until(database_state(database) == DATABASE_CONNECTED);
        run("SELECT id FROM t", false);
        ck_assert_int_eq(got.result, DATABASE_DONE);
}

TEST(memory_is_bounded_though_the_result_is_small)
{
        execute("CREATE TABLE big (id INTEGER PRIMARY KEY, name TEXT);"
                "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 20)"
                "INSERT INTO big SELECT i, hex(zeroblob(5000000)) FROM n");
        open_database();
        expect_lost("SELECT max(length(x)) FROM (SELECT name || id AS x FROM big ORDER BY 1 LIMIT 100)");
        ck_assert_msg(strstr(got.error.text, "memory"), "%s", got.error.text);
        run_until(database_state(database) == DATABASE_CONNECTED);
        expect_rows("SELECT max(length(name)) FROM big WHERE id < 3", "0:10000000;");
}

TEST(a_writer_keeps_readers_of_a_file_in_wal_mode_from_nothing)
{
        execute(modes[1]);
        pid_t pid = hold("BEGIN IMMEDIATE; UPDATE t SET name = 'changed'");
        open_within(SHORT);
        run_until(states[DATABASE_CONNECTED] > 0);
        expect_rows("SELECT name FROM t", "0:one;0:two;");
        run("UPDATE t SET name = 'x'", true);
        ck_assert_int_eq(got.result, DATABASE_LOST);
        ck_assert(strstr(got.error.text, "locked"));
        release(pid);
        run_until(database_state(database) == DATABASE_CONNECTED);
        expect_rows("SELECT name FROM t", "0:one;0:two;");
}

TEST(a_lock_on_the_whole_file_is_waited_for_as_long_as_the_time_limit)
{
        pid_t pid = hold("BEGIN EXCLUSIVE; UPDATE t SET name = 'changed'");

        open_within(SHORT);
        run_until(states[DATABASE_DOWN] > 0);
        ck_assert(strstr(why.text, "locked"));
        release(pid);
        run_until(states[DATABASE_CONNECTED] > 0);
        expect_rows("SELECT name FROM t", "0:one;0:two;");
}

TEST(statements_end_at_the_time_limit)
{
        execute("CREATE TABLE n (i INTEGER);"
                "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
                "INSERT INTO n SELECT i FROM n");
        open_within(SHORT);
        run_until(states[DATABASE_CONNECTED] > 0);
        expect_lost("SELECT count(*) FROM n a, n b, n c, n d, n e WHERE a.i + b.i + c.i + d.i + e.i = 1");
        ck_assert(strstr(got.error.text, "time limit"));
        ck_assert_uint_eq(states[DATABASE_DOWN], 1);
        run_until(database_state(database) == DATABASE_CONNECTED);
        ck_assert_uint_eq(database_connection_count(database), 2);
}

/* Objects that another user may put in the place of the table. The last one exceeds a reader's limit. */
static const char *const schemas[] = {
        "CREATE VIEW t AS WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n)"
        "  SELECT i AS id, i AS name, i AS at FROM n",
        "CREATE VIEW t AS SELECT 1 AS id, 'x' AS name, NULL AS at",
        "CREATE VIRTUAL TABLE t USING fts4(id, name, at)",
        "CREATE TABLE t (name TEXT)",
        "CREATE TABLE t (a TEXT, id INTEGER AS (length(hex(zeroblob(40000000)))), name TEXT);"
        "INSERT INTO t(a) VALUES ('x')",
};

TEST_LOOP(a_hostile_schema_costs_a_refusal, (int)ELEMENTSOF(schemas))
{
        execute("DROP TABLE t");
        execute(schemas[_i]);
        open_within(SHORT);
        run_until(states[DATABASE_DOWN] > 0);
        ck_assert_uint_eq(states[DATABASE_CONNECTED], 0);
        ck_assert_str_ne(why.text, "");
}

TEST(triggers_and_foreign_keys_run_nothing)
{
        execute("CREATE TABLE log (id INTEGER);"
                "CREATE TRIGGER grow AFTER UPDATE ON t BEGIN INSERT INTO log VALUES (1); END;"
                "CREATE TABLE child (id INTEGER REFERENCES t(id) ON DELETE CASCADE);"
                "INSERT INTO child VALUES (1)");
        open_database();
        run("UPDATE t SET name = 'x'", true);
        ck_assert_int_eq(got.result, DATABASE_DONE);
        run("DELETE FROM t WHERE id = 1", true);
        ck_assert_int_eq(got.result, DATABASE_DONE);
        expect_rows("SELECT (SELECT count(*) FROM log), (SELECT count(*) FROM child)", "0:0,1;");
}

/* Foreign parts of a schema are no reason to refuse the file. */
TEST(other_parts_of_the_schema_do_no_harm)
{
        execute("CREATE VIRTUAL TABLE search USING fts4(body); CREATE VIEW v AS SELECT * FROM t;"
                "CREATE TABLE g (a TEXT, b TEXT AS (upper(a)) STORED CHECK (length(a) < 9));"
                "CREATE INDEX i ON g (lower(a)); CREATE TRIGGER r AFTER INSERT ON g BEGIN SELECT 1; END");
        open_database();
        expect_rows("SELECT id FROM t", "0:1;0:2;");
}

TEST(a_file_that_is_missing_is_down_and_is_not_made)
{
        ck_assert_int_eq(unlink(path), 0);
        open_within(PATIENCE);
        run_until(states[DATABASE_DOWN] > 0);
        ck_assert(strstr(why.text, "No such file"));
        ck_assert_int_lt(access(path, F_OK), 0);
        execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)");
        run_until(states[DATABASE_CONNECTED] > 0);
}

TEST(a_file_that_is_replaced_is_down_and_opened_again)
{
        char other[128];

        open_database();
        snprintf(other, sizeof(other), "%s.new", path);
        ck_assert_int_eq(rename(path, other), 0);
        execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO t VALUES (7, 'seven')");
        expect_lost("SELECT id FROM t");
        ck_assert_str_eq(got.text, "");
        ck_assert_uint_eq(states[DATABASE_DOWN], 1);
        ck_assert(strstr(why.text, "replaced"));
        run_until(states[DATABASE_CONNECTED] == 2);
        expect_rows("SELECT id FROM t", "0:7;");
        ck_assert_int_eq(unlink(path), 0);
        expect_lost("SELECT id FROM t");
}

TEST(a_folder_that_is_replaced_is_down_and_read_again)
{
        char other[96];

        open_database();
        snprintf(other, sizeof(other), "%s.old", folder);
        ck_assert_int_eq(rename(folder, other), 0);
        ck_assert_int_eq(mkdir(folder, 0700), 0);
        expect_lost("SELECT id FROM t");
        run_until(states[DATABASE_DOWN] > 0);
        ck_assert_int_eq(rmdir(folder), 0);
        ck_assert_int_eq(rename(other, folder), 0);
        run_until(states[DATABASE_CONNECTED] == 2);
        run("SELECT id FROM t", false);
        ck_assert_int_eq(got.result, DATABASE_DONE);
}

/* Contents of a file that is no database of SQLite, or no longer. */
static void damage(int how)
{
        char garbage[8192];
        int fd;

        memset(garbage, 0x5a, sizeof(garbage));
        switch (how) {
        case 0: /* no database */
                unit_write_file(folder, "queue.sqlite3", "this is no database, and never was one\n");
                break;
        case 1: /* a directory */
                ck_assert_int_eq(unlink(path), 0);
                ck_assert_int_eq(mkdir(path, 0700), 0);
                break;
        case 2: /* what would make a reader wait */
                ck_assert_int_eq(unlink(path), 0);
                ck_assert_int_eq(mkfifo(path, 0600), 0);
                break;
        case 3: /* empty */
                ck_assert_int_eq(truncate(path, 0), 0);
                break;
        case 4: /* pages of garbage behind a header that is right */
                fd = open(path, O_WRONLY | O_CLOEXEC);
                ck_assert_int_ge(fd, 0);
                ck_assert_int_eq(pwrite(fd, garbage, 3000, 100), 3000);
                ck_assert_int_eq(pwrite(fd, garbage, sizeof(garbage), 4096), sizeof(garbage));
                close_fd(fd);
                break;
        default:
                ck_assert_int_eq(truncate(path, 4096), 0);
                break;
        }
}

TEST_LOOP(a_damaged_file_is_down, 6)
{
        damage(_i);
        open_within(SHORT);
        run_until(states[DATABASE_DOWN] > 0);
        ck_assert_uint_eq(states[DATABASE_CONNECTED], 0);
        ck_assert_str_ne(why.text, "");
}

TEST(a_file_that_is_damaged_meanwhile_is_down)
{
        open_database();
        damage(4);
        expect_lost("SELECT name FROM t");
        ck_assert_uint_eq(states[DATABASE_DOWN], 1);
}

TEST_LOOP(between_batches_nothing_is_left_beside_the_file, (int)ELEMENTSOF(modes))
{
        execute(modes[_i]);
        open_database();
        run("UPDATE t SET name = 'x'", true);
        ck_assert_int_eq(got.result, DATABASE_DONE);
        ck_assert_uint_eq(count_files(), 1);
        /* Only a file that nobody else has open leaves WAL mode. */
        execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE; COMMIT");
        expect_rows("SELECT name FROM t", "0:x;0:x;");
}

/* Runs as a user that may only read. Returns the status of the process, 0 if all is as it should be. */
static int read_only_child(void)
{
        if (setgid(65534) < 0 || setuid(65534) < 0)
                return 90;
        begin_programs();
        open_within(SHORT);
        run_until(states[DATABASE_CONNECTED] + states[DATABASE_DOWN] > 0);
        if (states[DATABASE_CONNECTED] == 0)
                return 91;
        run("SELECT name FROM t", false);
        if (strcmp(got.text, "0:one;0:two;") != 0)
                return 92;
        run("UPDATE t SET name = 'x'", true);
        return got.result == DATABASE_REFUSED ? 0 : 93;
}

TEST_LOOP(who_may_not_write_the_file_reads_it_and_makes_none, 2 * (int)ELEMENTSOF(modes))
{
        int status;

        if (geteuid() != 0)
                return;
        /* The file is opened by a URI, in which some characters mean something. */
        char other[sizeof(path)];
        snprintf(other, sizeof(other), "%s/a?b#c%%20d.sqlite3", folder);
        ck_assert_int_eq(rename(path, other), 0);
        memcpy(path, other, strlen(other) + 1);
        snprintf(url, sizeof(url), "sqlite3:%s/a%%3Fb%%23c%%2520d.sqlite3", folder);
        execute(modes[_i / 2]);
        /* Even where anybody may make files. */
        ck_assert_int_eq(chmod(folder, _i % 2 == 0 ? 0755 : 0777), 0);
        ck_assert_int_eq(chmod(path, 0644), 0);
        /* Without a process that has it open, a file in WAL mode has no log to read. */
        pid_t holder = hold("SELECT * FROM t; BEGIN; SELECT * FROM t");
        size_t before = count_files();
        pid_t pid = fork();
        if (pid == 0)
                _exit(read_only_child());
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        ck_assert_uint_eq(count_files(), before);
        release(holder);
}

/* The logs of a file are beside the file itself. */
TEST(a_file_that_a_link_leads_to_is_read_and_written)
{
        char other[96];

        snprintf(other, sizeof(other), "%s.other", folder);
        ck_assert_int_eq(mkdir(other, 0700), 0);
        snprintf(other, sizeof(other), "%s.other/db", folder);
        ck_assert_int_eq(rename(path, other), 0);
        ck_assert_int_eq(symlink(other, path), 0);
        open_database();
        run("UPDATE t SET name = 'new' WHERE id = 1", true);
        ck_assert_int_eq(got.result, DATABASE_DONE);
        expect_rows("SELECT id, name FROM t ORDER BY id", "0:1,new;0:2,two;");
}

TEST_MAIN("sqlite", .each = {setup, teardown_alone}, .timeout_seconds = 120)
