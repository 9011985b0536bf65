/* SPDX-License-Identifier: MIT */
/* The program sqmgr-postgresql and its client, with a real server. */
/* promises: P5 P8 */
#include "database_program.h"
#include "postgresql.h"

static void setup(void)
{
        setup_alone();
        postgresql_start();
        free(postgresql_execute("DROP TABLE IF EXISTS t; CREATE TABLE t (id int PRIMARY KEY, name text);"
                                "INSERT INTO t VALUES (1, 'one'), (2, NULL); GRANT SELECT ON t TO secret"));
        begin_programs();
}

static void teardown(void)
{
        end_programs();
        postgresql_kill();
}

/* Over a Unix socket, over TCP, with TLS, with a password. */
static const struct {
        const char *before, *after;
        bool has_address;
} urls[] = {
        {"postgresql://postgres@/postgres?host=", "", false},
        {"postgresql://postgres@", "/postgres?sslmode=disable&pool=5", true},
        {"postgresql://postgres@", "/postgres?sslmode=require", true},
        {"postgresql://secret:pass%20word@", "/postgres", true},
        {"postgresql://secret:pass%20word@localhost/postgres?hostaddr=", "", true},
};

TEST_LOOP(a_batch_reads_the_database, (int)ELEMENTSOF(urls))
{
        const char *const parameters[] = {"2", NULL};
        const struct database_statement statement = {
                .sql = "SELECT id, name, $2 FROM t WHERE id <= $1::int ORDER BY id",
                .parameters = parameters,
                .n = ELEMENTSOF(parameters)};
        char url[256];

        snprintf(url, sizeof(url), "%s%s%s", urls[_i].before,
                 urls[_i].has_address ? postgresql_address : postgresql_folder, urls[_i].after);
        open_url(url, PATIENCE);
        run_until(is_up() || states[DATABASE_DOWN] > 0);
        ck_assert_msg(is_up(), "%s: %s: %s", url, why.text, quoted_reveal(&why.quoted));
        run_list(&statement, 1, false);
        ck_assert_int_eq(got.result, DATABASE_DONE);
        ck_assert_str_eq(got.text, "0:1,one,NULL;0:2,NULL,NULL;");
        run("UPDATE t SET name = 'two'", false);
        ck_assert_int_eq(got.result, DATABASE_REFUSED);
        ck_assert(quoted_contains(&got.error.quoted, "25006"));
        ck_assert_uint_eq(database_connection_count(database), 1);
}

/* By the same helper. */
TEST_LOOP(a_server_that_comes_back_is_connected_to, 2)
{
        open_url(_i == 0 ? postgresql_url : postgresql_tcp_url, PATIENCE);
        run_until(is_up());
        pid_t pid = helper_pid();
        postgresql_kill();
        run_until(states[DATABASE_DOWN] > 0);
        postgresql_start();
        run_until(is_up());
        expect_rows("SELECT id FROM t ORDER BY id", "0:1;0:2;");
        ck_assert_int_eq(helper_pid(), pid);
}

TEST(a_frozen_server_is_down)
{
        open_url(postgresql_tcp_url, SHORT);
        run_until(is_up());
        ck_assert_int_eq(kill(postgresql_pid, SIGSTOP), 0);
        postgresql_signal_children(SIGSTOP);
        expect_lost("SELECT id FROM t");
        run_until(states[DATABASE_DOWN] > 0);
        postgresql_signal_children(SIGCONT);
        ck_assert_int_eq(kill(postgresql_pid, SIGCONT), 0);
}

TEST(errors_show_no_password)
{
        char url[256];

        snprintf(url, sizeof(url), "postgresql://secret:wr0ng@%s/postgres", postgresql_address);
        open_url(url, PATIENCE);
        run_until(states[DATABASE_DOWN] > 0);
        ck_assert(quoted_contains(&why.quoted, "password authentication failed"));
        ck_assert(!strstr(why.text, "wr0ng") && !quoted_contains(&why.quoted, "wr0ng"));
}

TEST_MAIN("postgresql_process", .each = {setup, teardown}, .once = {postgresql_make, postgresql_remove},
          .is_missing = postgresql_is_missing)
