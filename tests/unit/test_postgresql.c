/* SPDX-License-Identifier: MIT */
/* The program sqmgr-postgresql, with a real server: logins, batches, bounds, servers that stop, end and come
 * back. And with a proxy of the test. */
/* promises: P5 P8 */
#include "database/driver.h"
#include "database_driver.h"
#include "postgresql.h"
#include "quoting.h"

static void execute(const char *sql)
{
        free(postgresql_execute(sql));
}

static bool value_is(const char *sql, const char *expected)
{
        _cleanup_free_ char *value = postgresql_execute(sql);

        return value && strcmp(value, expected) == 0;
}

static void setup(void)
{
        setup_alone();
        postgresql_start();
        execute("DROP TABLE IF EXISTS t; CREATE TABLE t (id int PRIMARY KEY, name text, at timestamp);"
                "INSERT INTO t VALUES (1, 'one', NULL), (2, 'two', '2026-11-27 06:00:00.123456');"
                "GRANT SELECT ON t TO secret");
}

static void teardown(void)
{
        teardown_alone();
        postgresql_kill();
}

static void open_database(void)
{
        open_url(postgresql_url, PATIENCE);
        run_until(states[DATABASE_CONNECTED] > 0);
}

/* Returns the URL with the address and the folder of the server, valid until the next call. */
static const char *url_of(const char *form)
{
        static char url[512];
        size_t used = 0;

        while (*form != '\0') {
                const char *value = strncmp(form, "ADDRESS", 7) == 0  ? postgresql_address
                                    : strncmp(form, "FOLDER", 6) == 0 ? postgresql_folder
                                                                      : NULL;
                if (value)
                        used += (size_t)snprintf(url + used, sizeof(url) - used, "%s", value);
                else
                        url[used++] = *form;
                form += !value ? 1 : value == postgresql_address ? 7 : 6;
                ck_assert_uint_lt(used, sizeof(url) - 1);
        }
        url[used] = '\0';
        return url;
}

/* Over a Unix socket and over TCP: an address, a name, TLS that is required. */
static const char *const forms[] = {
        "postgresql://postgres@/postgres?host=FOLDER",
        "postgres://postgres@ADDRESS/postgres?sslmode=disable&pool=5&gadget=x",
        "postgresql://postgres@ADDRESS:5432/postgres?sslmode=require",
        "postgresql://postgres@localhost/postgres?hostaddr=ADDRESS&sslmode=verify-full&"
        "sslrootcert=FOLDER/root.crt",
        "postgresql://postgres@/postgres?host=/none,FOLDER&application_name=x&pool=5",
        "postgresql://secret:pass%20word@ADDRESS/postgres",
        "postgresql://secret:pass%20word@localhost/postgres?hostaddr=ADDRESS"};

TEST_LOOP(a_batch_reads_values_as_texts, ELEMENTSOF(forms))
{
        const char *const parameters[] = {"2", NULL};
        const struct database_statement statements[] = {
                {.sql = "SELECT id, name, at FROM t ORDER BY id"},
                {.sql = "SELECT name FROM t WHERE id = $1::int OR id = $1::int OR name = $2",
                 .parameters = parameters,
                 .n = 2},
                {.sql = "SELECT 1 WHERE false"},
                {.sql = "SELECT current_setting('transaction_read_only'), "
                        "current_setting('client_encoding')"},
        };
        open_url(url_of(forms[_i]), PATIENCE);
        run_until(states[DATABASE_CONNECTED] > 0);
        ck_assert_uint_eq(states[DATABASE_DOWN], 0);
        ck_assert_uint_eq(database_connection_count(database), 1);
        run_list(statements, ELEMENTSOF(statements), false);
        ck_assert_int_eq(got.result, DATABASE_DONE);
        ck_assert_str_eq(got.text, "0:1,one,NULL;0:2,two,2026-11-27 06:00:00.123456;1:two;3:on,UTF8;");
        ck_assert_uint_gt(database_rtt_usec(database), 0);
}

TEST(a_batch_that_writes_is_committed_as_a_whole)
{
        const struct database_statement statements[] = {
                {.sql = "SELECT current_setting('statement_timeout'), current_setting('lock_timeout')"},
                {.sql = "UPDATE t SET name = 'three' WHERE id = 1"},
                {.sql = "INSERT INTO t VALUES (4, 'four') RETURNING name"},
        };

        open_url(postgresql_url, 8 * USEC_PER_SEC);
        run_until(states[DATABASE_CONNECTED] > 0);
        run_list(statements, ELEMENTSOF(statements), true);
        ck_assert_int_eq(got.result, DATABASE_DONE);
        ck_assert_str_eq(got.text, "0:7s,4s;2:four;");
        ck_assert(value_is("SELECT string_agg(name, ',' ORDER BY id) FROM t", "three,two,four"));
        /* The limits were those of the transaction. */
        expect_rows("SHOW statement_timeout", "0:7s;");
}

TEST(a_refused_statement_rolls_all_back_and_the_connection_stays)
{
        const struct database_statement statements[] = {
                {.sql = "UPDATE t SET name = 'three' WHERE id = 1"},
                {.sql = "SELECT none FROM t"},
                {.sql = "UPDATE t SET name = 'four' WHERE id = 2"},
        };

        open_database();
        for (int i = 0; i < 3; i++) {
                run_list(statements, ELEMENTSOF(statements), true);
                ck_assert_int_eq(got.result, DATABASE_REFUSED);
                ck_assert(quoted_has_code(&got.error.quoted, "42703"));
        }
        ck_assert(value_is("SELECT string_agg(name, ',' ORDER BY id) FROM t", "one,two"));
        expect_rows("SELECT 1", "0:1;");
        ck_assert_uint_eq(database_connection_count(database), 1);
        ck_assert_uint_eq(states[DATABASE_DOWN], 0);
}

/* Each is refused by the server: by the mode of the batch, and at the end of a transaction. */
static const struct {
        const char *sql, *code;
        bool writes;
} refused[] = {
        {"DELETE FROM t", "25006", false},
        {"CREATE TEMP TABLE x (a int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)", "25006", false},
        {"SELECT id FROM t FOR UPDATE", "25006", false},
        {"INSERT INTO t VALUES (1)", "23505", true},
        {"SELECT 1/0", "22012", true},
        {"SELECT 1; SELECT 2", "42601", true},
};

TEST_LOOP(a_server_refuses_statements, ELEMENTSOF(refused))
{
        open_database();
        run(refused[_i].sql, refused[_i].writes);
        ck_assert_int_eq(got.result, DATABASE_REFUSED);
        ck_assert_msg(quoted_has_code(&got.error.quoted, refused[_i].code), "%s",
                      quoted_reveal(&got.error.quoted));
        expect_rows("SELECT count(*) FROM t", "0:2;");
}

TEST(a_commit_can_be_refused)
{
        execute("DROP TABLE IF EXISTS u; CREATE TABLE u (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
        open_database();
        run("INSERT INTO u VALUES (1), (1)", true);
        ck_assert_int_eq(got.result, DATABASE_REFUSED);
        ck_assert(quoted_has_code(&got.error.quoted, "23505"));
        expect_rows("SELECT count(*) FROM u", "0:0;");
}

TEST(a_lock_of_another_delays_a_batch_by_half_of_its_timeout)
{
        PGconn *other = PQconnectdb(postgresql_url);

        PQclear(PQexec(other, "BEGIN; SELECT * FROM t FOR UPDATE"));
        open_url(postgresql_url, 2 * USEC_PER_SEC);
        run_until(states[DATABASE_CONNECTED] > 0);
        run("SELECT * FROM t FOR UPDATE", true);
        ck_assert_int_eq(got.result, DATABASE_REFUSED);
        ck_assert(quoted_has_code(&got.error.quoted, "55P03"));
        PQfinish(other);
}

TEST(one_batch_runs_at_a_time_and_the_next_may_begin_in_done)
{
        const struct database_statement statement = {.sql = "SELECT 'first'"};

        open_url(postgresql_url, PATIENCE);
        ck_assert_int_eq(database_run(database, &statement, 1, false, &batch_ops, NULL), -ENOTCONN);
        run_until(states[DATABASE_CONNECTED] > 0);
        begin(&statement, 1, false);
        ck_assert_int_eq(database_run(database, &statement, 1, false, &batch_ops, NULL), -EBUSY);
        got.repeats = true;
        run_until(got.done == 2);
        ck_assert_str_eq(got.text, "0:first;0:again;");
}

TEST(the_object_may_be_freed_while_a_batch_runs_and_by_its_rows)
{
        const struct database_statement statement = {.sql = "SELECT id FROM t"};

        open_database();
        begin(&statement, 1, false);
        database = database_free(database);
        ck_assert_uint_eq(got.done, 1);
        ck_assert_int_eq(got.result, DATABASE_LOST);
        open_url(postgresql_url, PATIENCE);
        run_until(states[DATABASE_CONNECTED] > 1);
        got.frees = true;
        begin(&statement, 1, false);
        run_until(!database);
        ck_assert_uint_eq(got.done, 2);
        ck_assert_uint_eq(got.rows, 1);
}

TEST(a_row_that_cannot_be_used_ends_the_batch)
{
        open_database();
        got.stop = -ENOMEM;
        expect_lost("SELECT id FROM t");
        ck_assert_uint_eq(got.rows, 1);
        got.stop = 0;
        run_until(states[DATABASE_CONNECTED] == 2);
        run("SELECT id FROM t", false);
        ck_assert_int_eq(got.result, DATABASE_DONE);
}

/* Too many rows, too many bytes, one large row, too many columns; and what just fits. A series among the
 * columns is sent as it is made; in FROM, all of it is made before. */
static const struct {
        const char *sql;
        enum database_result result;
} sizes[] = {
        {"SELECT generate_series(1, 262143)", DATABASE_DONE},
        {"SELECT generate_series(1, 262144)", DATABASE_LOST},
        {"SELECT generate_series(1, 100000000)", DATABASE_LOST},
        {"SELECT repeat('x', 1024 * 1024) FROM generate_series(1, 31)", DATABASE_DONE},
        {"SELECT repeat('x', 1024 * 1024) FROM generate_series(1, 33)", DATABASE_LOST},
        {"SELECT repeat('x', 33 * 1024 * 1024)", DATABASE_LOST},
};

TEST_LOOP(rows_and_bytes_of_a_batch_are_bounded, 2 * ELEMENTSOF(sizes))
{
        int i = _i / 2;

        open_url(_i % 2 == 0 ? postgresql_url : postgresql_tcp_url, PATIENCE);
        run_until(states[DATABASE_CONNECTED] > 0);
        run(sizes[i].sql, false);
        ck_assert_msg(got.result == sizes[i].result, "%s: %s", sizes[i].sql, got.error.text);
        ck_assert_uint_le(got.rows, DATABASE_ROWS_MAX);
        ck_assert_uint_le(got.bytes, DATABASE_BYTES_MAX);
        if (got.result == DATABASE_LOST)
                run_until(states[DATABASE_CONNECTED] == 2);
        expect_rows("SELECT 1", "0:1;");
}

TEST(too_many_columns_are_refused)
{
        char sql[512] = "SELECT 1";

        for (int i = 0; i < 64; i++)
                strcat(sql, ",1");
        open_database();
        run(sql, false);
        ck_assert_int_eq(got.result, DATABASE_LOST);
        ck_assert_uint_eq(got.rows, 0);
}

TEST(a_statement_that_takes_too_long_is_ended_by_the_server)
{
        open_url(postgresql_url, 4 * USEC_PER_SEC);
        run_until(states[DATABASE_CONNECTED] > 0);
        run("SELECT pg_sleep(600)", false);
        /* On a very busy machine, the limit of this side comes first. */
        if (got.result == DATABASE_REFUSED)
                ck_assert(quoted_has_code(&got.error.quoted, "57014"));
        else
                ck_assert_int_eq(got.result, DATABASE_LOST);
}

TEST(a_frozen_server_is_lost_after_the_timeout_and_comes_back)
{
        const struct database_statement statement = {.sql = "SELECT 1"};

        open_url(postgresql_url, 2 * USEC_PER_SEC);
        run_until(database_state(database) == DATABASE_CONNECTED);
        ck_assert_int_eq(kill(postgresql_pid, SIGSTOP), 0);
        postgresql_signal_children(SIGSTOP);
        begin(&statement, 1, false);
        run_until(got.done == 1);
        ck_assert_int_eq(got.result, DATABASE_LOST);
        ck_assert_int_eq(database_state(database), DATABASE_DOWN);
        ck_assert_uint_eq(database_rtt_usec(database), 0);
        /* A new connection is accepted by the kernel, and not answered. */
        database = database_free(database);
        open_url(postgresql_url, SHORT);
        database_free(database);
        ck_assert_int_eq(kill(postgresql_pid, SIGCONT), 0);
        postgresql_signal_children(SIGCONT);
        database = NULL;
}

TEST(a_server_that_accepts_and_stays_silent_is_down_after_the_timeout)
{
        ck_assert_int_eq(kill(postgresql_pid, SIGSTOP), 0);
        open_url(postgresql_tcp_url, 2 * USEC_PER_SEC);
        run_until(states[DATABASE_DOWN] > 0);
        ck_assert(why.text[0] != '\0');
        ck_assert_int_eq(kill(postgresql_pid, SIGCONT), 0);
        run_until(states[DATABASE_CONNECTED] > 0);
        ck_assert_ptr_null(database_error(database));
}

/* By the same helper. */
TEST_LOOP(a_killed_server_is_noticed_at_once_and_its_successor_found, 2)
{
        open_url(_i == 0 ? postgresql_url : postgresql_tcp_url, PATIENCE);
        run_until(is_up());
        pid_t pid = helper_pid();
        postgresql_kill();
        run_until(database_state(database) == DATABASE_DOWN);
        ck_assert(database_error(database));
        postgresql_start();
        run_until(is_up());
        ck_assert_uint_eq(database_connection_count(database), 2);
        expect_rows("SELECT 1", "0:1;");
        ck_assert_int_eq(helper_pid(), pid);
}

TEST(a_batch_is_lost_with_its_connection)
{
        const struct database_statement statements[] = {{.sql = "SELECT pg_sleep(1000)"},
                                                        {.sql = "SELECT 1"}};

        open_database();
        begin(statements, ELEMENTSOF(statements), false);
        while (!value_is("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'", "1"))
                ck_assert_int_ge(sd_event_run(event, 20 * USEC_PER_MSEC), 0);
        execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sqmgr'");
        run_until(got.done == 1);
        ck_assert_int_eq(got.result, DATABASE_LOST);
        /* The server has said why. */
        ck_assert(quoted_has_code(&got.error.quoted, "57P01"));
        run_until(database_state(database) == DATABASE_CONNECTED);
}

/* Logins that fail. secret: what no error may show. */
static const struct {
        const char *url, *text, *said, *secret;
} failures[] = {
        {"postgresql://secret:wr0ng@ADDRESS/postgres", "cannot connect", "password authentication failed",
         "wr0ng"},
        {"postgresql://secret@ADDRESS/postgres", "the server asks for a password", "", "wr0ng"},
        {"postgresql://postgres@ADDRESS/none", "cannot connect", "database \"none\" does not exist", ""},
        {"postgresql://postgres@ADDRESS:1/none", "cannot connect", "refused", ""},
        {"postgresql://postgres@/none?host=/none", "cannot connect", "No such file", ""},
        {"postgresql://postgres@none.invalid/none", "cannot resolve host 'none.invalid'", "", ""},
        {"postgresql://postgres:wr%0ng@ADDRESS/none", "libpq cannot read the URL", "", "wr"},
        {"postgresql://postgres:wr0ng@ADDRESS:wr0ng/none", "cannot connect", "", "pass"},
        {"postgresql://postgres@ADDRESS/none?service=x", "service", "", ""},
        {"postgresql://postgres@a,b/none?hostaddr=127.0.0.1", "differ in length", "", ""},
        {"postgresql://postgres@ADDRESS/postgres?sslmode=verify-full", "cannot connect",
         "certificate verify failed", ""},
};

TEST_LOOP(a_login_that_fails_is_explained_without_the_password, ELEMENTSOF(failures))
{
        open_url(url_of(failures[_i].url), PATIENCE);
        run_until(states[DATABASE_DOWN] > 0);
        ck_assert_msg(strstr(why.text, failures[_i].text), "%s", why.text);
        const char *said = quoted_reveal(&why.quoted);
        ck_assert_msg(strstr(said, failures[_i].said), "%s", said);
        ck_assert(said[0] == '\0' || said[strlen(said) - 1] != '\n');
        ck_assert(failures[_i].secret[0] == '\0' || (!strstr(why.text, failures[_i].secret) &&
                                                     !quoted_contains(&why.quoted, failures[_i].secret)));
}

TEST(without_the_tables_the_database_is_down_until_they_exist)
{
        execute("DROP TABLE t");
        open_url(postgresql_url, PATIENCE);
        run_until(states[DATABASE_DOWN] > 0);
        ck_assert(quoted_has_code(&why.quoted, "42P01"));
        ck_assert_str_eq(why.text, DRIVER_NO_TABLES);
        ck_assert_uint_eq(database_connection_count(database), 0);
        execute("CREATE TABLE t (id int, name text)");
        run_until(states[DATABASE_CONNECTED] > 0);
}

/* Neither the environment nor files of the user take part. */
TEST(files_and_the_environment_are_not_used)
{
        char file[256];

        snprintf(file, sizeof(file), "%s:*:*:*:pass word\n", postgresql_address);
        unit_write_file(postgresql_folder, "home/.pgpass", file);
        snprintf(file, sizeof(file), "%s/home/.pgpass", postgresql_folder);
        ck_assert_int_eq(chmod(file, 0600), 0);
        snprintf(file, sizeof(file), "%s/home", postgresql_folder);
        ck_assert_int_eq(setenv("HOME", file, 1), 0);
        open_url(url_of("postgresql://secret@ADDRESS/postgres"), PATIENCE);
        run_until(states[DATABASE_DOWN] > 0);
        ck_assert_msg(strstr(why.text, "asks for a password"), "%s", why.text);
}

/* A proxy on the loop, between the driver and the server. */
static int proxy_listener = -1;
static struct {
        int client, server;
        sd_event_io_handler_t on_reply;
        bool holds; /* replies, until the server is ready for the next batch */
        unsigned flights;
        char bytes[65536];
        size_t n;
} proxy;

static bool is_ready_for_next(void)
{
        return proxy.n >= 6 && memcmp(proxy.bytes + proxy.n - 6, "Z\0\0\0\5I", 6) == 0;
}

static int on_proxied_reply(sd_event_source *source, int fd, uint32_t events _unused_,
                            void *userdata _unused_)
{
        ssize_t n = recv(fd, proxy.bytes + proxy.n, sizeof(proxy.bytes) - proxy.n, MSG_DONTWAIT);

        if (n <= 0)
                return n == 0 ? sd_event_source_set_enabled(source, SD_EVENT_OFF) : 0;
        proxy.n += (size_t)n;
        if (proxy.holds && !is_ready_for_next())
                return 0;
        ck_assert_int_eq(send(proxy.client, proxy.bytes, proxy.n, MSG_NOSIGNAL), (ssize_t)proxy.n);
        proxy.n = 0;
        return 0;
}

static int on_proxied_request(sd_event_source *source, int fd, uint32_t events _unused_,
                              void *userdata _unused_)
{
        char bytes[65536];
        ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

        if (n <= 0)
                return n == 0 ? sd_event_source_set_enabled(source, SD_EVENT_OFF) : 0;
        proxy.flights++;
        ck_assert_int_eq(send(proxy.server, bytes, (size_t)n, MSG_NOSIGNAL), n);
        return 0;
}

static int connect_server(void)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%s/.s.PGSQL.5432", postgresql_folder);
        ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        return fd;
}

static int on_proxied_client(sd_event_source *source _unused_, int fd, uint32_t events _unused_,
                             void *userdata _unused_)
{
        proxy.client = accept(fd, NULL, NULL);
        proxy.server = connect_server();
        ck_assert_int_ge(sd_event_add_io(event, NULL, proxy.client, EPOLLIN, on_proxied_request, NULL), 0);
        ck_assert_int_ge(sd_event_add_io(event, NULL, proxy.server, EPOLLIN, proxy.on_reply, NULL), 0);
        return 0;
}

/* Has the handler called for what the server replies. Returns the URL. */
static const char *serve(sd_event_io_handler_t on_reply)
{
        const char *url = postgresql_listen(&proxy_listener);

        proxy.on_reply = on_reply;
        ck_assert_int_ge(sd_event_add_io(event, NULL, proxy_listener, EPOLLIN, on_proxied_client, NULL), 0);
        return url;
}

/* No reply comes before the server has seen the whole batch: a driver that waited for one would wait for
 * ever. */
TEST(a_batch_is_one_round_trip)
{
        const struct database_statement statements[] = {
                {.sql = "SELECT id, name FROM t"},
                {.sql = "UPDATE t SET name = 'x'"},
                {.sql = "SELECT count(*) FROM t"},
                {.sql = "SELECT name FROM t"},
        };

        open_url(serve(on_proxied_reply), PATIENCE);
        run_until(states[DATABASE_CONNECTED] > 0);
        proxy.holds = true;
        proxy.flights = 0;
        run_list(statements, ELEMENTSOF(statements), true);
        ck_assert_int_eq(got.result, DATABASE_DONE);
        ck_assert_uint_eq(got.rows, 5);
        ck_assert_uint_eq(proxy.flights, 1);
}

/* Replies arrive byte by byte. */
static int on_slow_reply(sd_event_source *source, int fd, uint32_t events _unused_, void *userdata _unused_)
{
        char byte;
        ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);

        if (n <= 0)
                return n == 0 ? sd_event_source_set_enabled(source, SD_EVENT_OFF) : 0;
        ck_assert_int_eq(send(proxy.client, &byte, 1, MSG_NOSIGNAL), 1);
        return 0;
}

TEST(replies_may_arrive_in_pieces)
{
        open_url(serve(on_slow_reply), PATIENCE);
        run_until(states[DATABASE_CONNECTED] > 0);
        expect_rows("SELECT id, name FROM t ORDER BY id", "0:1,one;0:2,two;");
        run("SELECT none", false);
        ck_assert_int_eq(got.result, DATABASE_REFUSED);
}

TEST_MAIN("postgresql", .each = {setup, teardown}, .once = {postgresql_make, postgresql_remove},
          .is_missing = postgresql_is_missing)
