/* SPDX-License-Identifier: MIT */
/* The program sqmgr-reader-postgresql, in its sandbox and as a fleet's user, with the tables of Solid Queue
 * in a real server. */
/* promises: P5 P8 */
#include "daemon/runtime/reader_process.h"
#include "frameworks/solid_queue/solid_queue.h"
#include "loop.h"
#include "postgresql.h"
#include "queries/configuration.h"
#include "reader/sandbox.h"

#define PATIENCE (60 * USEC_PER_SEC)
#define SHORT    (500 * USEC_PER_MSEC)
/* A user of Debian that owns nothing, as a fleet's user. */
#define FLEET_USER "daemon"
#define IDENTITY   "web-1:4711:1"

static struct children children;
static struct reader_starter_daemon starter;
static struct reader *reader;
static unsigned downs;
static struct error_report why;

static void on_state(struct reader *whose _unused_, enum reader_state state, const struct error_report *error,
                     void *userdata _unused_)
{
        downs += state == READER_STATE_DOWN;
        if (error)
                why = *error;
}

static int on_child(sd_event_source *source _unused_, const struct signalfd_siginfo *info _unused_,
                    void *userdata _unused_)
{
        for (struct child *child = children.first, *next; child; child = next) {
                next = child->next;
                (void)children_reap(&children, child->pid);
        }
        return 0;
}

static void execute(const char *sql)
{
        free(postgresql_execute(sql));
}

/* Also a role of the name of the fleet's user, who is known by the socket. */
static void make_tables(void)
{
        const char *source = getenv("srcdir");
        static char sql[64 * 1024];
        char name[512];

        snprintf(name, sizeof(name), "%s/tests/frameworks/solid_queue/postgresql.sql", source ?: "../source");
        FILE *file = fopen(name, "re");
        ck_assert_ptr_nonnull(file);
        sql[fread(sql, 1, sizeof(sql) - 1, file)] = '\0';
        ck_assert_int_eq(fclose(file), 0);
        execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT ALL ON SCHEMA public TO public");
        execute(sql);
        execute("INSERT INTO solid_queue_processes"
                " (id, kind, last_heartbeat_at, supervisor_id, pid, hostname, metadata, created_at, name) "
                "VALUES"
                " (1, 'Supervisor(async)', '2026-11-27 06:00:00.000001', NULL, 4711, 'web-1', NULL,"
                "  '2026-11-27 05:00:00', 's'),"
                " (2, 'Worker', '2026-11-27 06:00:01.000002', 1, 4711, 'web-1',"
                "  '{\"polling_interval\":0.1,\"queues\":\"*\",\"thread_pool_size\":3}', '2026-11-27 "
                "05:00:00',"
                "  'w')");
        execute("DO $$ BEGIN CREATE ROLE " FLEET_USER " LOGIN; EXCEPTION WHEN duplicate_object THEN END $$");
        execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO " FLEET_USER ", secret");
}

static void start(const char *url, usec_t command_timeout)
{
        const struct redis_settings settings = {.connect_timeout = PATIENCE,
                                                .command_timeout = command_timeout};
        struct reader_configuration configuration;

        ck_assert_int_eq(
                reader_configuration_make_database(&settings, url, solid_queue_traits.id, &configuration), 0);
        configuration.user = strdup(FLEET_USER);
        ck_assert_int_eq(reader_new(event, &starter.starter, &configuration, on_state, NULL, &reader), 0);
}

static bool is_up(void)
{
        return reader_state(reader) == READER_STATE_CONNECTED;
}

static struct {
        unsigned n;
        enum answer_status status;
        bool found;
        uint64_t sent_usec;
} answered;

static void on_heartbeat(struct answer *answer, void *userdata _unused_)
{
        answered.n++;
        answered.status = answer->status;
        answered.found = answer->status == ANSWER_OK && answer->heartbeat.found;
        answered.sent_usec = answer->heartbeat.heartbeat.sent_usec;
}

static void ask(void)
{
        const struct field texts[] = {QUERY_TEXT(IDENTITY)};
        const struct query query = {.kind = QUERY_HEARTBEAT, .texts = texts, .n_texts = 1};
        unsigned before = answered.n;

        ck_assert_int_eq(reader_ask(reader, &query, on_heartbeat, NULL), 0);
        run_until(answered.n > before);
}

static void setup(void)
{
        sigset_t child;

        postgresql_start();
        make_tables();
        ck_assert_int_ge(sd_event_new(&event), 0);
        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        ck_assert_int_eq(sigprocmask(SIG_BLOCK, &child, NULL), 0);
        ck_assert_int_ge(sd_event_add_signal(event, NULL, SIGCHLD, on_child, NULL), 0);
        ck_assert_int_eq(reader_starter_init(&starter, &children, "./sqmgr-reader"), 0);
}

static void teardown(void)
{
        reader = reader_free(reader);
        reader_starter_clear(&starter);
        ck_assert_ptr_null(children.first);
        sd_event_unref(event);
        postgresql_kill();
}

static bool is_in_a_sandbox(void)
{
        char name[64], line[256];
        bool found = false;

        ck_assert_ptr_nonnull(children.first);
        snprintf(name, sizeof(name), "/proc/%d/status", (int)children.first->pid);
        FILE *file = fopen(name, "re");
        ck_assert_ptr_nonnull(file);
        while (fgets(line, sizeof(line), file))
                found |= strcmp(line, "Seccomp:\t2\n") == 0;
        ck_assert_int_eq(fclose(file), 0);
        return found;
}

/* Over a Unix socket, over TCP, with TLS, with a password, with the name of the user alone. */
static const struct {
        const char *before, *after;
        bool has_address, only_root;
} urls[] = {
        {"postgresql://postgres@/postgres?host=", "", false, false},
        {"postgresql://postgres@", "/postgres?sslmode=disable&pool=5", true, false},
        {"postgresql://postgres@", "/postgres?sslmode=require", true, false},
        {"postgresql://secret:pass%20word@", "/postgres", true, false},
        {"postgresql://secret:pass%20word@localhost/postgres?hostaddr=", "", true, false},
        {"postgresql:///postgres?host=", "", false, true},
};

TEST_LOOP(heartbeats_are_read_from_the_database, (int)ELEMENTSOF(urls))
{
        char url[256];

        if (urls[_i].only_root && geteuid() != 0)
                return;
        snprintf(url, sizeof(url), "%s%s%s", urls[_i].before,
                 urls[_i].has_address ? postgresql_address : postgresql_folder, urls[_i].after);
        start(url, PATIENCE);
        run_until(is_up() || downs > 0);
        ck_assert_msg(downs == 0, "%s: %s: %s", url, why.text, quoted_reveal(&why.quoted));
        ck_assert(sandbox_is_off() || is_in_a_sandbox());
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

/* In the same process: the sandbox permits what a new connection needs. */
TEST_LOOP(a_server_that_comes_back_is_connected_to, 2)
{
        start(_i == 0 ? postgresql_url : postgresql_tcp_url, PATIENCE);
        run_until(is_up());
        pid_t pid = children.first->pid;
        postgresql_kill();
        run_until(downs > 0);
        postgresql_start();
        run_until(is_up());
        ask();
        ck_assert_int_eq(answered.status, ANSWER_OK);
        ck_assert(answered.found);
        ck_assert_int_eq(children.first->pid, pid);
}

TEST(a_frozen_server_is_down)
{
        start(postgresql_tcp_url, SHORT);
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
        start(url, PATIENCE);
        run_until(downs > 0);
        ck_assert(quoted_contains(&why.quoted, "password authentication failed"));
        ck_assert(!strstr(why.text, "wr0ng") && !quoted_contains(&why.quoted, "wr0ng"));
}

TEST_MAIN("postgresql_process", .each = {setup, teardown}, .once = {postgresql_make, postgresql_remove},
          .is_missing = postgresql_is_missing)
