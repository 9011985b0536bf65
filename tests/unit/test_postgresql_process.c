/* SPDX-License-Identifier: MIT */
/* The program sqmgr-reader-postgresql, with the tables of Solid Queue in a real server. */
/* promises: P5 P8 */
#include "database_program.h"
#include "postgresql.h"

#define SHORT (500 * USEC_PER_MSEC)

static void execute(const char *sql)
{
        free(postgresql_execute(sql));
}

static void make_tables(void)
{
        execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT ALL ON SCHEMA public TO public");
        make_worker("solid_queue/postgresql.sql", execute);
        execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO secret");
}

static void setup(void)
{
        postgresql_start();
        make_tables();
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

TEST_LOOP(heartbeats_are_read_from_the_database, (int)ELEMENTSOF(urls))
{
        char url[256];

        snprintf(url, sizeof(url), "%s%s%s", urls[_i].before,
                 urls[_i].has_address ? postgresql_address : postgresql_folder, urls[_i].after);
        start_reader(url, PATIENCE);
        run_until(is_up() || downs > 0);
        ck_assert_msg(downs == 0, "%s: %s: %s", url, why.text, quoted_reveal(&why.quoted));
        ask();
        ck_assert_int_eq(answered.status, ANSWER_OK);
        ck_assert(answered.found);
        uint64_t first = answered.sent_usec;
        execute("UPDATE solid_queue_processes SET last_heartbeat_at = '2026-11-27 06:01:00.5' WHERE id = 2");
        ask();
        ck_assert_uint_gt(answered.sent_usec, first);
        execute("DELETE FROM solid_queue_processes");
        ask();
        ck_assert_int_eq(answered.status, ANSWER_OK);
        ck_assert(!answered.found);
        ck_assert_uint_eq(reader_connection_count(reader), 1);
}

/* In the same process. */
TEST_LOOP(a_server_that_comes_back_is_connected_to, 2)
{
        start_reader(_i == 0 ? postgresql_url : postgresql_tcp_url, PATIENCE);
        run_until(is_up());
        pid_t pid = reader_pid();
        postgresql_kill();
        run_until(downs > 0);
        postgresql_start();
        run_until(is_up());
        ask();
        ck_assert_int_eq(answered.status, ANSWER_OK);
        ck_assert(answered.found);
        ck_assert_int_eq(reader_pid(), pid);
}

TEST(a_frozen_server_is_down)
{
        start_reader(postgresql_tcp_url, SHORT);
        run_until(is_up());
        ck_assert_int_eq(kill(postgresql_pid, SIGSTOP), 0);
        postgresql_signal_children(SIGSTOP);
        ask();
        ck_assert_int_eq(answered.status, ANSWER_LOST);
        run_until(downs > 0);
        postgresql_signal_children(SIGCONT);
        ck_assert_int_eq(kill(postgresql_pid, SIGCONT), 0);
}

TEST(errors_show_no_password)
{
        char url[256];

        snprintf(url, sizeof(url), "postgresql://secret:wr0ng@%s/postgres", postgresql_address);
        start_reader(url, PATIENCE);
        run_until(downs > 0);
        ck_assert(quoted_contains(&why.quoted, "password authentication failed"));
        ck_assert(!strstr(why.text, "wr0ng") && !quoted_contains(&why.quoted, "wr0ng"));
}

TEST_MAIN("postgresql_process", .each = {setup, teardown}, .once = {postgresql_make, postgresql_remove},
          .is_missing = postgresql_is_missing)
