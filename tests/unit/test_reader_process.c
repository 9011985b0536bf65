/* SPDX-License-Identifier: MIT */
/* Is the program sqmgr-reader replaced when it dies? Run against a real redis-server. */
/* promises: P5 P8 */
#include "daemon/runtime/reader_process.h"
#include "frameworks/sidekiq/format.h"
#include "io/reader_start.h"
#include "quoting.h"
#include "redis_server.h"
#include "servers/configuration.h"
#include <limits.h>

static struct redis_settings settings;
static struct children children;
static struct reader_starter_daemon starter;
static struct reader *reader;
static unsigned downs;
static char last_error[256];

static void on_state(struct reader *whose _unused_, enum reader_state state, const struct error_report *error,
                     void *userdata _unused_)
{
        downs += state == READER_STATE_DOWN;
        snprintf(last_error, sizeof(last_error), "%s", error_shown(error));
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

static void start(const char *url)
{
        struct reader_configuration configuration;

        settings.url = (char *)url;
        ck_assert_int_eq(reader_configuration_make(&settings, NULL, sidekiq_traits.id, &configuration), 0);
        ck_assert_int_eq(reader_new(event, &starter.starter, &configuration, on_state, NULL, &reader), 0);
}

static bool is_up(void)
{
        return reader_state(reader) == READER_STATE_CONNECTED;
}

static void setup(void)
{
        sigset_t child;

        loop_start();
        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        ck_assert_int_eq(sigprocmask(SIG_BLOCK, &child, NULL), 0);
        ck_assert_int_ge(sd_event_add_signal(event, NULL, SIGCHLD, on_child, NULL), 0);
        settings = (struct redis_settings){.timeout = SERVER_PATIENCE};
        downs = 0;
        reader_starter_init(&starter, &children, "./sqmgr-reader");
        server_start(0, NULL, NULL);
        server_wait();
}

static void teardown(void)
{
        reader = reader_free(reader);
        reader_starter_clear(&starter);
        ck_assert_ptr_null(children.first);
        server_kill();
        loop_end();
}

static pid_t reader_pid(void)
{
        ck_assert_ptr_nonnull(children.first);
        struct child *child = children.first;
        while (child->next)
                child = child->next;
        return child->pid;
}

TEST(a_reader_that_is_killed_is_replaced_and_why_is_reported)
{
        uint64_t connections = 0;

        start(server_url);
        for (unsigned i = 0; i < 5; i++) {
                run_until(is_up());
                ck_assert_uint_gt(reader_connection_count(reader), connections);
                connections = reader_connection_count(reader);
                unsigned before = downs;
                ck_assert_int_eq(kill(reader_pid(), SIGKILL), 0);
                run_until(downs > before && strstr(last_error, "KILL"));
        }
        run_until(is_up());
}

static unsigned lost;

static void count_lost(struct answer *answer, void *userdata _unused_)
{
        lost += answer->status == ANSWER_LOST;
}

TEST(a_query_that_waits_for_a_killed_reader_is_lost_at_once)
{
        const struct field texts[] = {QUERY_TEXT("host:77:0123456789ab")};
        const struct query query = {.kind = QUERY_HEARTBEAT, .texts = texts, .n_texts = 1};

        start(server_url);
        run_until(is_up());
        pid_t pid = reader_pid();
        ck_assert_int_eq(kill(pid, SIGSTOP), 0);
        ck_assert_int_eq(reader_ask(reader, &query, count_lost, NULL), 0);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        run_until(lost > 0);
        run_until(is_up());
        ck_assert_uint_eq(lost, 1);
}

TEST(a_server_that_is_not_there_is_down_and_found_once_it_is)
{
        server_kill();
        start(server_url);
        run_until(downs > 0);
        ck_assert_ptr_nonnull(reader_error(reader));
        server_start(0, NULL, NULL);
        run_until(is_up());
}

TEST(a_program_that_is_missing_is_named_with_its_package_and_found_later)
{
        struct reader_configuration configuration;
        char name[64], path[96];

        snprintf(name, sizeof(name), "%s/reader", server_directory);
        snprintf(path, sizeof(path), "%s-sqlite", name);
        reader_starter_clear(&starter);
        reader_starter_init(&starter, &children, name);
        settings.url = (char *)server_url;
        ck_assert_int_eq(reader_configuration_make(&settings, NULL, sidekiq_traits.id, &configuration), 0);
        configuration.engine = DATABASE_SQLITE;
        ck_assert_int_eq(reader_new(event, &starter.starter, &configuration, on_state, NULL, &reader), 0);
        run_until(downs > 0);
        ck_assert_str_eq(last_error,
                         "the program sqmgr-reader-sqlite is missing; install the package sqmgr-sqlite");
        char program[PATH_MAX];
        ck_assert_ptr_nonnull(realpath("./sqmgr-reader", program));
        ck_assert_int_eq(symlink(program, path), 0);
        run_until(is_up());
        ck_assert_int_eq(unlink(path), 0);
}

/* The ends of processes are seen only once the loop runs. */
TEST(killed_readers_that_do_not_end_are_bounded)
{
        struct reader_process *process;
        struct reader_configuration configuration = {.engine = DATABASE_SQLITE};
        int fd;

        for (unsigned i = 0; i < 4; i++) {
                ck_assert_int_eq(
                        starter.starter.start(&starter.starter, &configuration, NULL, NULL, &process, &fd),
                        0);
                close_fd(fd);
                starter.starter.stop(process);
        }
        ck_assert_int_eq(starter.starter.start(&starter.starter, &configuration, NULL, NULL, &process, &fd),
                         -EBUSY);
        run_until(!children.first);
        ck_assert_int_eq(starter.starter.start(&starter.starter, &configuration, NULL, NULL, &process, &fd),
                         0);
        close_fd(fd);
        starter.starter.stop(process);
}

TEST_MAIN("reader_process", .each = {setup, teardown},
          .once = {server_directory_make, server_directory_remove}, .is_missing = server_is_missing)
