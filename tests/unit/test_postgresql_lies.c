/* SPDX-License-Identifier: MIT */
/* The driver for PostgreSQL, with a server that lies and floods. */
/* promises: P5 P8 */
#include "database_driver.h"
#include "postgresql.h"

/* A server that logs anybody in, answers the probe, and then sends these bytes: at once, or as the answer to
 * a batch, once or again and again. */
#define READY   "Z\0\0\0\5I"
#define PARSED  "1\0\0\0\4"
#define BOUND   "2\0\0\0\4"
#define NO_DATA "n\0\0\0\4"
#define BEGUN                                                                                                \
        PARSED BOUND NO_DATA "C\0\0\0\xa"                                                                    \
                             "BEGIN\0"
#define COLUMN   PARSED BOUND "T\0\0\0\x1a\0\1c\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0"
#define ONE_ROW  "D\0\0\0\xb\0\1\0\0\0\1x"
#define SELECTED COLUMN ONE_ROW "C\0\0\0\xdSELECT 1\0"
#define COMMITTED                                                                                            \
        PARSED BOUND NO_DATA "C\0\0\0\xb"                                                                    \
                             "COMMIT\0"
static const char probed[] = BEGUN SELECTED SELECTED COMMITTED READY;

struct lie {
        const char *what, *bytes;
        size_t n;
        bool repeats;
};

static void say(int fd, const char *bytes, size_t n)
{
        for (ssize_t sent; n > 0 && (sent = send(fd, bytes, n, MSG_NOSIGNAL)) > 0; n -= (size_t)sent)
                bytes += sent;
        if (n > 0)
                _exit(0);
}

static void await_request(int fd)
{
        char bytes[65536];

        if (recv(fd, bytes, sizeof(bytes), 0) <= 0)
                _exit(0);
}

/* Repeats the lie as often as it fits, so that the socket never runs dry. Returns the length. */
static size_t fill(const struct lie *lie, char *buffer, size_t size)
{
        size_t n = 0;

        for (; n + lie->n <= size; n += lie->n)
                memcpy(buffer + n, lie->bytes, lie->n);
        return n;
}

/* Never returns. */
static void serve_lie(int fd, const struct lie *lie, bool at_once)
{
        static char flood[256 * 1024];
        static const char welcome[] = "R\0\0\0\x8\0\0\0\0" READY;

        await_request(fd);
        say(fd, welcome, sizeof(welcome) - 1);
        await_request(fd);
        say(fd, probed, sizeof(probed) - 1);
        if (!at_once)
                await_request(fd);
        say(fd, lie->bytes, lie->n);
        while (lie->repeats)
                say(fd, flood, fill(lie, flood, sizeof(flood)));
        for (;;)
                await_request(fd);
}

/* Serves port 1234 by processes of its own. Returns the URL. */
static const char *start_liar(const struct lie *lie, bool at_once)
{
        int listener;
        const char *url = postgresql_listen(&listener);
        pid_t parent = getpid();

        if (fork() != 0)
                return url;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)signal(SIGCHLD, SIG_IGN);
        while (getppid() == parent) {
                int fd = accept(listener, NULL, NULL);
                if (fd >= 0 && fork() == 0) {
                        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                        serve_lie(fd, lie, at_once);
                }
                close_fd(fd);
        }
        _exit(0);
}

#define LIE(text) text, sizeof(text) - 1

static const struct lie lies[] = {
        {"nothing", LIE(""), false},
        {"no protocol", LIE("HTTP/1.1 200 OK\r\n\r\n"), true},
        {"ready too early", LIE(READY), false},
        {"ready in a transaction", LIE(BEGUN SELECTED SELECTED COMMITTED "Z\0\0\0\5T"), false},
        {"no commit", LIE(BEGUN SELECTED SELECTED PARSED BOUND NO_DATA "C\0\0\0\xdROLLBACK\0" READY), false},
        {"rows without end", LIE(ONE_ROW), true},
        {"a row of 1 GB", LIE(BEGUN SELECTED COLUMN "D\x3f\xff\xff\xff\0\1\x3f\xff\xff\xf5"), true},
        {"a row of 2 GB", LIE(BEGUN SELECTED COLUMN "D\x7f\xff\xff\xff\0\1\x7f\xff\xff\xf5"), true},
        {"a negative length", LIE(BEGUN SELECTED COLUMN "D\xff\xff\xff\xff\0\1\xff\xff\xff\xf5"), true},
        {"a value longer than its row", LIE(BEGUN SELECTED COLUMN "D\0\0\0\xb\0\1\0\0\0\x7fx"), false},
        {"a copy", LIE("G\0\0\0\7\0\0\0"), false},
        {"a copy from it",
         LIE("H\0\0\0\7\0\0\0"
             "d\0\0\0\5x"),
         true},
        {"notices without end", LIE("N\0\0\0\x0bMhaha\0\0"), true},
        {"parameters without end",
         LIE("S\0\0\0\xc"
             "abc\0def\0"),
         true},
        {"notifications without end", LIE("A\0\0\0\x0c\0\0\0\1x\0y\0"), true},
};

/* With the memory that a reader has (reader/run.c). Each ends the batch as lost, and the connection; nothing
 * grows. */
TEST_LOOP(a_lying_server_is_away, 2 * ELEMENTSOF(lies))
{
        const struct rlimit memory = {(rlim_t)256 << 20, (rlim_t)256 << 20};
        const struct database_statement statement = {.sql = "SELECT 1"};
        const struct lie *lie = &lies[_i / 2];
        bool at_once = _i % 2 == 1;
        struct rusage usage;

        if (at_once && !lie->repeats)
                return;
        const char *url = start_liar(lie, at_once);
#ifndef __SANITIZE_ADDRESS__
        ck_assert_int_eq(setrlimit(RLIMIT_DATA, &memory), 0);
#endif
        open_url(url, at_once ? PATIENCE : 2 * USEC_PER_SEC);
        if (!at_once) {
                run_until(states[DATABASE_CONNECTED] > 0);
                begin(&statement, 1, false);
                run_until(got.done == 1);
                ck_assert_msg(got.result == DATABASE_LOST, "%s", lie->what);
                run_until(states[DATABASE_CONNECTED] > 1);
        }
        run_until(states[DATABASE_DOWN] > 0);
        ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
#ifndef __SANITIZE_ADDRESS__
        ck_assert(usage.ru_maxrss < 300 * 1024);
#endif
}

/* A server on the loop itself, whose socket always has more than a wakeup reads. */
static unsigned flood_requests;
static sd_event_source *flood_io;

static int on_flood_room(sd_event_source *source _unused_, int fd, uint32_t events _unused_,
                         void *userdata _unused_)
{
        static const struct lie notice = {.bytes = "N\0\0\0\x0bMhaha\0", .n = 12};
        static char flood[12 * 1024];
        size_t n = fill(&notice, flood, sizeof(flood));

        /* Only whole: a message that is cut would end the flood. */
        while (send(fd, flood, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n)
                ;
        return 0;
}

static int on_flood_request(sd_event_source *source _unused_, int fd, uint32_t events _unused_,
                            void *userdata _unused_)
{
        static const char welcome[] = "R\0\0\0\x8\0\0\0\0" READY;
        char bytes[65536];

        if (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) <= 0)
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        flood_requests++;
        if (flood_requests == 1)
                say(fd, welcome, sizeof(welcome) - 1);
        else if (flood_requests == 2)
                say(fd, probed, sizeof(probed) - 1);
        else if (!flood_io)
                ck_assert(sd_event_add_io(event, &flood_io, dup(fd), EPOLLOUT, on_flood_room, NULL) >= 0 &&
                          sd_event_source_set_priority(flood_io, -50) >= 0);
        return 0;
}

static int on_flood_client(sd_event_source *source _unused_, int fd, uint32_t events _unused_,
                           void *userdata _unused_)
{
        int client = accept(fd, NULL, NULL);

        if (flood_io)
                return close(client);
        return sd_event_add_io(event, NULL, client, EPOLLIN, on_flood_request, NULL);
}

TEST(a_flood_does_not_hide_that_time_has_run_out)
{
        const struct database_statement statement = {.sql = "SELECT 1"};
        int listener;
        const char *url = postgresql_listen(&listener);

        ck_assert_int_ge(sd_event_add_io(event, NULL, listener, EPOLLIN, on_flood_client, NULL), 0);
        open_url(url, SHORT);
        run_until(states[DATABASE_CONNECTED] > 0);
        begin(&statement, 1, false);
        run_until(got.done == 1);
        ck_assert_int_eq(got.result, DATABASE_LOST);
        ck_assert_str_eq(got.error.text, "no reply in time");
        flood_io = sd_event_source_disable_unref(flood_io);
}

static void make_folder(void)
{
        snprintf(postgresql_folder, sizeof(postgresql_folder), "/tmp/test_postgresql.XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(postgresql_folder));
        snprintf(postgresql_url, sizeof(postgresql_url), "postgresql://postgres@/postgres?host=%s",
                 postgresql_folder);
}

TEST_MAIN("postgresql_lies", .each = {setup_alone, teardown_alone}, .once = {make_folder, postgresql_remove})
