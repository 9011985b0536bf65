/* SPDX-License-Identifier: MIT */
/* The program sqmgr-reader-sqlite, in its sandbox and as a fleet's user, with the tables of Solid Queue. */
/* promises: P5 P8 */
#include "daemon/runtime/reader_process.h"
#include "frameworks/solid_queue/solid_queue.h"
#include "loop.h"
#include "queries/configuration.h"
#include "reader/sandbox.h"
#include "wire/quoted.h"
#include <pwd.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>

#define PATIENCE (20 * USEC_PER_SEC)
/* A user of Debian that owns nothing, as a fleet's user. */
#define FLEET_USER "daemon"
#define IDENTITY   "web-1:4711:1"

static char folder[64], path[96], url[128];
static const struct passwd *fleet_user; /* NULL: the test does not run as root */
static struct children children;
static struct reader_starter_daemon starter;
static struct reader *reader;
static unsigned downs;
static char last_error[512];

static void on_state(struct reader *whose _unused_, enum reader_state state, const struct error_report *error,
                     void *userdata _unused_)
{
        downs += state == READER_STATE_DOWN;
        snprintf(last_error, sizeof(last_error), "%s", error ? error->text : "");
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
        sqlite3 *handle;
        char *message = NULL;

        ck_assert_int_eq(sqlite3_open(path, &handle), SQLITE_OK);
        ck_assert_int_eq(sqlite3_busy_timeout(handle, 10000), SQLITE_OK);
        ck_assert_msg(sqlite3_exec(handle, sql, NULL, NULL, &message) == SQLITE_OK, "%s: %s", sql, message);
        ck_assert_int_eq(sqlite3_close(handle), SQLITE_OK);
}

static void make_tables(void)
{
        const char *source = getenv("srcdir");
        static char sql[64 * 1024];
        char name[512];

        snprintf(name, sizeof(name), "%s/tests/frameworks/solid_queue/sqlite.sql", source ?: "../source");
        FILE *file = fopen(name, "re");
        ck_assert_ptr_nonnull(file);
        sql[fread(sql, 1, sizeof(sql) - 1, file)] = '\0';
        ck_assert_int_eq(fclose(file), 0);
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
        if (fleet_user) {
                ck_assert_int_eq(chown(folder, fleet_user->pw_uid, fleet_user->pw_gid), 0);
                ck_assert_int_eq(chown(path, fleet_user->pw_uid, fleet_user->pw_gid), 0);
                ck_assert_int_eq(chmod(folder, 0700), 0);
        }
}

static void start(void)
{
        static const struct redis_settings settings = {.connect_timeout = PATIENCE,
                                                       .command_timeout = PATIENCE};
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

static pid_t reader_pid(void)
{
        ck_assert_ptr_nonnull(children.first);
        return children.first->pid;
}

static struct {
        unsigned n;
        enum answer_status status;
        bool found;
        uint64_t sent_usec;
        unsigned concurrency;
} answered;

static void on_heartbeat(struct answer *answer, void *userdata _unused_)
{
        answered.n++;
        answered.status = answer->status;
        answered.found = answer->status == ANSWER_OK && answer->heartbeat.found;
        answered.sent_usec = answer->heartbeat.heartbeat.sent_usec;
        answered.concurrency = answer->heartbeat.heartbeat.concurrency;
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

        ck_assert_int_ge(sd_event_new(&event), 0);
        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        ck_assert_int_eq(sigprocmask(SIG_BLOCK, &child, NULL), 0);
        ck_assert_int_ge(sd_event_add_signal(event, NULL, SIGCHLD, on_child, NULL), 0);
        fleet_user = geteuid() == 0 ? getpwnam(FLEET_USER) : NULL;
        snprintf(folder, sizeof(folder), "/tmp/test_sqlite.XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/queue.sqlite3", folder);
        snprintf(url, sizeof(url), "sqlite3:%s", path);
        memset(&answered, 0, sizeof(answered));
        downs = 0;
        ck_assert_int_eq(reader_starter_init(&starter, &children, "./sqmgr-reader"), 0);
}

static void teardown(void)
{
        reader = reader_free(reader);
        reader_starter_clear(&starter);
        ck_assert_ptr_null(children.first);
        sd_event_unref(event);
}

static const char *const modes[] = {"DELETE", "WAL"};

static void set_mode(int i)
{
        char sql[64];

        snprintf(sql, sizeof(sql), "PRAGMA journal_mode = %s", modes[i]);
        execute(sql);
}

static bool is_in_a_sandbox(void)
{
        char name[64], line[256];
        bool found = false;

        snprintf(name, sizeof(name), "/proc/%d/status", (int)reader_pid());
        FILE *file = fopen(name, "re");
        ck_assert_ptr_nonnull(file);
        while (fgets(line, sizeof(line), file))
                found |= strcmp(line, "Seccomp:\t2\n") == 0;
        ck_assert_int_eq(fclose(file), 0);
        return found;
}

TEST_LOOP(heartbeats_are_read_from_the_file_of_the_fleets_user, (int)ELEMENTSOF(modes))
{
        make_tables();
        set_mode(_i);
        start();
        run_until(is_up());
        ask();
        ck_assert_int_eq(answered.status, ANSWER_OK);
        ck_assert(answered.found);
        ck_assert_uint_eq(answered.concurrency, 3);
        ck_assert(sandbox_is_off() || is_in_a_sandbox());
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

static void attribute(const char *suffix)
{
        char name[128];
        struct stat status;

        snprintf(name, sizeof(name), "%s%s", path, suffix);
        ck_assert_msg(stat(name, &status) == 0, "%s", name);
        ck_assert_uint_eq(status.st_uid, fleet_user->pw_uid);
        ck_assert_uint_eq(status.st_gid, fleet_user->pw_gid);
}

/* A worker of this user opens the file in WAL mode. Its log and shared memory are then there. */
TEST(files_that_are_made_beside_it_are_the_users)
{
        make_tables();
        set_mode(1);
        start();
        run_until(is_up());
        if (!fleet_user)
                return;
        pid_t pid = fork();
        if (pid == 0) {
                sqlite3 *handle;

                if (setgid(fleet_user->pw_gid) < 0 || setuid(fleet_user->pw_uid) < 0 ||
                    sqlite3_open(path, &handle) != SQLITE_OK ||
                    sqlite3_exec(handle, "UPDATE solid_queue_processes SET metadata = NULL", NULL, NULL,
                                 NULL) != SQLITE_OK)
                        _exit(1);
                (void)pause();
        }
        char name[128];
        snprintf(name, sizeof(name), "%s-wal", path);
        run_until(access(name, F_OK) == 0);
        ask();
        ck_assert_int_eq(answered.status, ANSWER_OK);
        attribute("-wal");
        attribute("-shm");
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        ask();
        ck_assert_int_eq(answered.status, ANSWER_OK);
        ck_assert(answered.found);
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

/* The process is replaced, because its sandbox has the folder of before. */
TEST(a_folder_that_appears_later_is_found)
{
        char other[96];

        make_tables();
        snprintf(other, sizeof(other), "%s.old", folder);
        ck_assert_int_eq(rename(folder, other), 0);
        start();
        run_until(downs > 0);
        ck_assert(strstr(last_error, "No such file"));
        ck_assert_int_eq(rename(other, folder), 0);
        run_until(is_up());
        ask();
        ck_assert(answered.found);
}

TEST(another_users_file_is_down)
{
        make_tables();
        if (!fleet_user)
                return;
        ck_assert_int_eq(chown(path, 0, 0), 0);
        ck_assert_int_eq(chmod(path, 0600), 0);
        start();
        run_until(downs > 0);
        ck_assert(strstr(last_error, "Permission denied"));
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
