/* SPDX-License-Identifier: MIT */
/* The program sqmgr-sqlite and its client: helpers that are killed, stopped, missing or stuck. */
/* promises: P5 P8 */
#include "sqlite_folder.h"
#include <limits.h>

static void open_database(usec_t timeout)
{
        open_within(timeout);
        run_until(is_up());
}

TEST(a_large_result_arrives_whole_and_a_larger_one_is_refused)
{
        open_database(PATIENCE);
        run("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)"
            "SELECT i, 'text', NULL, zeroblob(64) FROM n",
            false);
        ck_assert_int_eq(got.result, DATABASE_DONE);
        ck_assert_uint_eq(got.rows, 200000);
        run("SELECT hex(zeroblob(16000000))", false);
        ck_assert_int_eq(got.result, DATABASE_DONE);
        ck_assert_uint_eq(got.bytes, 32000000);
        expect_lost("SELECT hex(zeroblob(16000000)) UNION ALL SELECT hex(zeroblob(8000000))");
        run_until(states[DATABASE_DOWN] == 1);
        run_until(is_up());
}

TEST(one_batch_runs_at_a_time_and_its_size_is_bounded)
{
        const struct database_statement statement = {.sql = "SELECT 1"};
        _cleanup_free_ char *text = malloc((size_t)17 << 20);
        const char *const parameters[] = {text};
        const struct database_statement large = {.sql = "SELECT $1", .parameters = parameters, .n = 1};

        ck_assert_ptr_nonnull(text);
        memset(text, 'x', (size_t)17 << 20);
        text[((size_t)17 << 20) - 1] = '\0';
        open_within(PATIENCE);
        ck_assert_int_eq(database_run(database, &statement, 1, false, &batch_ops, NULL), -ENOTCONN);
        run_until(is_up());
        ck_assert_int_eq(database_run(database, &large, 1, false, &batch_ops, NULL), -ENOBUFS);
        begin(&statement, 1, false);
        ck_assert_int_eq(database_run(database, &statement, 1, false, &batch_ops, NULL), -EBUSY);
        run_until(got.done > 0);
        ck_assert_str_eq(got.text, "0:1;");
}

TEST(a_helper_that_is_killed_is_replaced_and_no_count_repeats)
{
        uint64_t connections = 0;

        open_within(PATIENCE);
        for (unsigned i = 1; i <= 2; i++) {
                run_until(is_up());
                ck_assert_uint_gt(database_connection_count(database), connections);
                connections = database_connection_count(database);
                ck_assert_int_eq(kill(helper_pid(), SIGKILL), 0);
                run_until(strstr(why.text, "sqmgr-sqlite was killed by signal 9 (SIGKILL)"));
                why = (struct error_report){0};
        }
        run_until(is_up());
        expect_rows("SELECT id FROM t", "0:1;0:2;");
}

TEST(a_batch_of_a_helper_that_is_killed_is_lost_at_once)
{
        const struct database_statement statement = {.sql = "SELECT id FROM t"};

        open_database(PATIENCE);
        ck_assert_int_eq(kill(helper_pid(), SIGSTOP), 0);
        begin(&statement, 1, false);
        ck_assert_int_eq(kill(helper_pid(), SIGKILL), 0);
        run_until(got.done > 0);
        ck_assert_int_eq(got.result, DATABASE_LOST);
        run_until(is_up());
        ck_assert_uint_eq(got.done, 1);
}

TEST(a_helper_that_is_stopped_is_replaced_after_the_time_limit)
{
        open_database(SHORT);
        ck_assert_int_eq(kill(helper_pid(), SIGSTOP), 0);
        expect_lost("SELECT id FROM t");
        ck_assert_str_eq(got.error.text, "sqmgr-sqlite did not answer and was ended");
        run_until(is_up());
        run("SELECT id FROM t", false);
        ck_assert_int_eq(got.result, DATABASE_DONE);
}

/* SIGBUS, at a shared memory that is no longer there. */
TEST(a_log_that_is_truncated_costs_a_process_at_most)
{
        char name[128];

        execute(modes[1]);
        open_database(PATIENCE);
        snprintf(name, sizeof(name), "%s-shm", path);
        for (unsigned i = 0; i < 20; i++) {
                FILE *file = fopen(name, "we");

                ck_assert_ptr_nonnull(file);
                ck_assert_int_eq(fclose(file), 0);
                if (is_up())
                        run("SELECT id FROM t", false);
                else
                        run_until(is_up());
                (void)unlink(name);
        }
        run_until(is_up());
        run("SELECT id FROM t", false);
}

TEST(a_program_that_is_missing_is_named_with_its_package_and_found_later)
{
        char link[96], program[PATH_MAX];

        database_helpers_clear(&helpers);
        database_helpers_init(&helpers, &children, folder);
        open_within(PATIENCE);
        run_until(states[DATABASE_DOWN] > 0);
        ck_assert_str_eq(why.text, "the program sqmgr-sqlite is missing; install the package sqmgr-sqlite");
        snprintf(link, sizeof(link), "%s/sqmgr-sqlite", folder);
        ck_assert_ptr_nonnull(realpath("./sqmgr-sqlite", program));
        ck_assert_int_eq(symlink(program, link), 0);
        run_until(is_up());
}

/* The ends of helpers are seen only once the loop runs. */
TEST(killed_helpers_that_do_not_end_are_bounded)
{
        struct database_starter *starter = &helpers.starter;
        struct database_helper *helper;
        int fd;

        for (unsigned i = 0; i < 4; i++) {
                ck_assert_int_eq(starter->start(starter, DATABASE_SQLITE, NULL, NULL, &helper, &fd), 0);
                close_fd(fd);
                starter->stop(helper);
        }
        ck_assert_int_eq(starter->start(starter, DATABASE_SQLITE, NULL, NULL, &helper, &fd), -EBUSY);
        open_within(PATIENCE);
        run_until(is_up());
        ck_assert_uint_le(states[DATABASE_DOWN], 1);
}

TEST(a_program_that_sqmgr_does_not_start_says_so)
{
        ck_assert_int_eq(
                WEXITSTATUS(
                        system("./sqmgr-sqlite </dev/null 2>&1 | grep -q 'only sqmgr starts this program'")),
                0);
}

TEST_MAIN("sqlite_process", .each = {setup, teardown_alone}, .timeout_seconds = 120)
