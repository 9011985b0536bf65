/* SPDX-License-Identifier: MIT */
/* The program sqmgr-postgresql, with a server that lies and floods. */
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
        /* This flood does not hide that time has run out. */
        {"notices without end", LIE("N\0\0\0\x0bMhaha\0\0"), true},
        {"parameters without end",
         LIE("S\0\0\0\xc"
             "abc\0def\0"),
         true},
        {"notifications without end", LIE("A\0\0\0\x0c\0\0\0\1x\0y\0"), true},
};

/* Each ends the batch as lost, and the connection; no helper grows. */
TEST_LOOP(a_lying_server_is_away, 2 * ELEMENTSOF(lies))
{
        const struct database_statement statement = {.sql = "SELECT 1"};
        const struct lie *lie = &lies[_i / 2];
        bool at_once = _i % 2 == 1;
        struct rusage usage;

        if (at_once && !lie->repeats)
                return;
        open_url(start_liar(lie, at_once), at_once ? PATIENCE : 2 * USEC_PER_SEC);
        if (!at_once) {
                run_until(states[DATABASE_CONNECTED] > 0);
                begin(&statement, 1, false);
                run_until(got.done == 1);
                ck_assert_msg(got.result == DATABASE_LOST, "%s", lie->what);
                if (strcmp(lie->what, "notices without end") == 0)
                        ck_assert_str_eq(got.error.text, "no reply in time");
                run_until(states[DATABASE_CONNECTED] > 1);
        }
        run_until(states[DATABASE_DOWN] > 0);
        database = database_free(database);
        /* Waits for the helper. */
        database_helpers_clear(&helpers);
        ck_assert_int_eq(getrusage(RUSAGE_CHILDREN, &usage), 0);
#ifndef __SANITIZE_ADDRESS__
        ck_assert(usage.ru_maxrss < 300 * 1024);
#endif
}

static void make_folder(void)
{
        unit_make_folder(postgresql_folder);
        snprintf(postgresql_url, sizeof(postgresql_url), "postgresql://postgres@/postgres?host=%s",
                 postgresql_folder);
}

TEST_MAIN("postgresql_lies", .each = {setup_alone, teardown_alone}, .once = {make_folder, postgresql_remove})
