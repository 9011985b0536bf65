/* SPDX-License-Identifier: MIT */
/* Is what a Sentinel says taken for no more than it is? The real ones stand in tests/e2e/sentinel.bats; here
 * the test itself answers in their place, as none of them would. */
/* promises: P5 */
#include "golden.h"
#include "quoting.h"
#include "redis/sentinel.h"
#include "redis_server.h"
#include <sys/socket.h>

#define SENTINELS 2
#define ANSWER    "*2\r\n$8\r\n10.0.0.1\r\n$4\r\n6379\r\n"
#define LISTENING "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n"

static struct redis_settings settings;
static struct sentinel *sentinel;
static int listeners[SENTINELS], client;
static char text[256], reported[128], why[512];
static unsigned n_reported, n_none;

static int listen_somewhere(unsigned *ret_port)
{
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t len = sizeof(address);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, len), 0);
        ck_assert_int_eq(listen(fd, 16), 0);
        ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
        *ret_port = ntohs(address.sin_port);
        return fd;
}

static void on_master(const char *host, unsigned port, void *userdata)
{
        ck_assert_ptr_eq(userdata, &settings);
        snprintf(reported, sizeof(reported), "%s %u", host, port);
        n_reported++;
}

static void on_none(const struct error_report *error, void *userdata)
{
        ck_assert_ptr_eq(userdata, &settings);
        snprintf(why, sizeof(why), "%s", error_shown(error));
        n_none++;
}

static const struct sentinel_ops ops = {.on_master = on_master, .on_none = on_none};

static void setup(void)
{
        unsigned ports[SENTINELS];

        loop_start();
        for (size_t i = 0; i < SENTINELS; i++)
                listeners[i] = listen_somewhere(&ports[i]);
        snprintf(text, sizeof(text), "127.0.0.1:%u, 127.0.0.1:%u", ports[0], ports[1]);
        settings = (struct redis_settings){
                .sentinels = text,
                .master_name = (char *)"mymaster",
                .timeout = SERVER_PATIENCE,
        };
        client = -1;
}

static void start(void)
{
        ck_assert_int_eq(sentinel_new(event, &settings, NULL, &ops, &settings, &sentinel), 0);
        sentinel_locate(sentinel);
}

static void teardown(void)
{
        sentinel = sentinel_free(sentinel);
        close_fd(client);
        for (size_t i = 0; i < SENTINELS; i++)
                close_fd(listeners[i]);
        loop_end();
}

/* Waits for the question to this one, and takes it whole. */
static void accept_at(size_t i)
{
        char question[512] = "";
        size_t len = 0;

        client = close_fd(client);
        run_until((client = accept4(listeners[i], NULL, NULL, SOCK_CLOEXEC)) >= 0);
        while (!strstr(question, "+switch-master")) {
                ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
                ssize_t n = recv(client, question + len, sizeof(question) - 1 - len, MSG_DONTWAIT);
                if (n > 0)
                        question[len += (size_t)n] = '\0';
        }
        ck_assert_ptr_nonnull(strstr(question, "get-master-addr-by-name\r\n$8\r\nmymaster\r\n"));
}

static void say(const char *bytes)
{
        ck_assert_int_eq(send(client, bytes, strlen(bytes), MSG_NOSIGNAL), (ssize_t)strlen(bytes));
}

static void output_message(const char *channel, const char *message)
{
        char bytes[512];

        snprintf(bytes, sizeof(bytes), "*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(channel),
                 channel, strlen(message), message);
        say(bytes);
}

TEST(names_the_master_and_follows_it)
{
        static const char *const others[] = {
                "mymaster2 10.0.0.1 6379 10.0.0.9 6379",
                "mymaster",
                "mymaster ",
                "mymaster 10.0.0.1 6379",
                "mymaster 10.0.0.1 6379 10.0.0.9",
                "mymaster 10.0.0.1 6379 10.0.0.9 ",
                "mymaster 10.0.0.1 6379 10.0.0.9 port",
                "mymaster 10.0.0.1 6379 10.0.0.9 0",
                "mymaster 10.0.0.1 6379 10.0.0.9 65536",
                "mymaster 10.0.0.1 6379 10.0.0.9 6379 more",
                "",
        };

        start();
        accept_at(0);
        say(ANSWER LISTENING);
        run_until(n_reported == 1);
        ck_assert_str_eq(reported, "10.0.0.1 6379");
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                output_message("+switch-master", others[i]);
        output_message("+odown", "mymaster 10.0.0.1 6379 10.0.0.9 6379");
        output_message("+switch-master", "mymaster 10.0.0.1 6379 10.0.0.2 6380");
        run_until(n_reported == 2);
        ck_assert_str_eq(reported, "10.0.0.2 6380");
        ck_assert_uint_eq(n_none, 0);
}

static const struct {
        const char *answer;
        bool is_slow; /* the rest is waited for */
        bool is_lost; /* the error depends on the kernel, too */
} strange[] = {
        {.answer = "*-1\r\n" LISTENING},
        {.answer = "$-1\r\n" LISTENING},
        {.answer = "+OK\r\n" LISTENING},
        {.answer = ":1\r\n:1\r\n:1\r\n:1\r\n"},
        {.answer = "*0\r\n" LISTENING},
        {.answer = "*2\r\n:1\r\n:2\r\n" LISTENING},
        {.answer = "*2\r\n$-1\r\n$-1\r\n" LISTENING},
        {.answer = "*2\r\n$0\r\n\r\n$4\r\n6379\r\n" LISTENING},
        {.answer = "*2\r\n$1\r\nh\r\n$0\r\n\r\n" LISTENING},
        {.answer = "*2\r\n$3\r\nh\x1b[\r\n$4\r\n6379\r\n" LISTENING},
        {.answer = "*2\r\n$1\r\nh\r\n$5\r\n65536\r\n" LISTENING},
        {.answer = "*2\r\n$1\r\nh\r\n$2\r\n-1\r\n" LISTENING},
        {.answer = "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$12\r\nmymaster a b\r\n",
         .is_slow = true},
        {.answer = "*3\r\n$7\r\nmessage\r\n:1\r\n:2\r\n" LISTENING},
        {.answer = "-NOAUTH Authentication required.\r\n"},
        {.answer = "-ERR unknown command\r\n"},
        {.answer = ANSWER "-NOPERM no channel\r\n"},
        {.answer = "HTTP/1.1 400 Bad Request\r\n\r\n", .is_lost = true},
        {.answer = "$-7\r\n", .is_slow = true, .is_lost = true},
        {.answer = "", .is_slow = true},
};

static void start_for_strange(int i)
{
        if (strange[i].is_slow)
                settings.timeout = USEC_PER_SEC;
        start();
}

TEST_LOOP(asks_the_next_where_one_answers_strangely, ELEMENTSOF(strange))
{
        start_for_strange(_i);
        accept_at(0);
        say(strange[_i].answer);
        accept_at(1);
        say(ANSWER LISTENING);
        run_until(n_reported == 1);
        ck_assert_str_eq(reported, "10.0.0.1 6379");
        ck_assert_uint_eq(n_none, 0);
}

TEST_LOOP(says_why_none_knows, ELEMENTSOF(strange))
{
        start_for_strange(_i);
        for (unsigned turn = 1; turn <= 2; turn++) {
                if (turn == 2)
                        sentinel_locate(sentinel);
                for (size_t i = 0; i < SENTINELS; i++) {
                        accept_at(i);
                        say(strange[_i].answer);
                }
                run_until(n_none == turn);
        }
        ck_assert_uint_eq(n_reported, 0);
        ck_assert_ptr_nonnull(strstr(why, "'mymaster'"));
        if (!strange[_i].is_lost)
                golden_expect_with("sentinel",
                                   strange[_i].answer[0] != '\0' ? golden_label(strange[_i].answer)
                                                                 : "nothing",
                                   why, strrchr(text, ':') + 1, "PORT");
}

/* Nobody waits for it, and nothing is reported: the current master may be good. */
TEST(listens_to_the_next_where_one_is_lost)
{
        start();
        accept_at(0);
        say(ANSWER LISTENING);
        run_until(n_reported == 1);
        accept_at(1);
        say("$-1\r\n" LISTENING);
        accept_at(0);
        say("$-1\r\n" LISTENING);
        accept_at(1);
        say("*2\r\n$8\r\n10.0.0.2\r\n$4\r\n6379\r\n" LISTENING);
        run_until(n_reported == 2);
        ck_assert_str_eq(reported, "10.0.0.2 6379");
        ck_assert_uint_eq(n_none, 0);
}

TEST(asks_another_where_the_named_one_was_no_master)
{
        start();
        accept_at(0);
        say(ANSWER LISTENING);
        run_until(n_reported == 1);
        sentinel_locate(sentinel);
        accept_at(0);
        say(ANSWER LISTENING);
        run_until(n_reported == 2);
        sentinel_distrust(sentinel);
        sentinel_locate(sentinel);
        accept_at(1);
        ck_assert_int_eq(accept4(listeners[0], NULL, NULL, SOCK_CLOEXEC), -1);
        say(ANSWER LISTENING);
        run_until(n_reported == 3);
}

TEST_MAIN("sentinel", .each = {setup, teardown})
