/* SPDX-License-Identifier: MIT */
/* Does the connection to Redis survive what a server can do to it? Run against a real one. */
/* promises: P5 */
#include "golden.h"
#include "io/clock.h"
#include "io/resolve.h"
#include "redis/oversized.h"
#include "redis/redis.h"
#include "redis_server.h"

static struct redis_settings settings;
static struct redis *redis;
static unsigned n_states, n_replies, n_failures;
static enum reader_state last_state;
static char last_error[512];
static bool free_at_state, free_at_reply;

static void setup(void)
{
        loop_start();
        settings = (struct redis_settings){
                .url = server_url,
                .timeout = SERVER_PATIENCE,
        };
        /* Names are looked up in vain here: not for longer than need be. */
        ck_assert_int_eq(setenv("RES_OPTIONS", "timeout:1 attempts:1", 1), 0);
}

/* A look-up that nobody waits for any more continues in its thread: at the end of a process that is a leak.
 */
static void wait_for_threads(void)
{
        struct stat status;

        /* The directory has a link for itself, one for its parent and one for each thread. */
        while (stat("/proc/self/task", &status) == 0 && status.st_nlink > 3)
                (void)usleep(10000);
}

static void teardown(void)
{
        redis = redis_free(redis);
        wait_for_threads();
        loop_end();
}

static void on_state(struct redis *r, enum reader_state state, const struct error_report *error,
                     void *userdata)
{
        ck_assert_ptr_eq(userdata, &settings);
        ck_assert_int_eq(redis_state(r), state);
        n_states++;
        last_state = state;
        snprintf(last_error, sizeof(last_error), "%s", error ? error->text : "");
        if (free_at_state)
                redis = redis_free(redis);
}

static void on_reply(struct redis *r, const struct redisReply *reply, void *userdata)
{
        ck_assert_ptr_nonnull(r);
        ck_assert_ptr_eq(userdata, &n_replies);
        if (reply)
                n_replies++;
        else
                n_failures++;
        if (free_at_reply)
                redis = redis_free(redis);
}

/* For tests of deadlines. */
static void hurry(void)
{
        settings.timeout = 300 * USEC_PER_MSEC;
}

static void start(void)
{
        ck_assert_int_eq(redis_new(event, &settings, NULL, on_state, &settings, &redis), 0);
        ck_assert_int_eq(redis_state(redis), READER_STATE_CONNECTING);
}

static int ask(void)
{
        static const char *const argv[] = {"PING"};
        return redis_command(redis, on_reply, &n_replies, 1, argv, NULL);
}

static bool is_up(void)
{
        return last_state == READER_STATE_CONNECTED;
}

static bool is_down(void)
{
        return last_state == READER_STATE_DOWN || last_state == READER_STATE_SLOW;
}

/* Starts a server and connects to it. */
static void connect_to_server(void)
{
        server_start(0, NULL, NULL);
        start();
        run_until(is_up());
}

/* Our part of an error: what the kernel or the server says follows a colon. */
static void assert_error_before_colon(const char *section)
{
        ck_assert_str_eq(redis_error(redis)->text, last_error);
        last_error[strcspn(last_error, ":")] = '\0';
        golden_expect("redis-errors", section, last_error);
}

/* The error is that of the section of tests/golden/redis-errors. */
static void assert_error(const char *section)
{
        if (strcmp(section, "connection lost") == 0 || strcmp(section, "a database that is not there") == 0) {
                assert_error_before_colon(section);
                return;
        }
        ck_assert_str_eq(redis_error(redis)->text, last_error);
        golden_expect("redis-errors", section, last_error);
}

TEST(connects_and_measures_the_round_trip)
{
        server_start(0, NULL, NULL);
        start();
        ck_assert_int_eq(ask(), -ENOTCONN);
        run_until(is_up());
        ck_assert_ptr_null(redis_error(redis));
        ck_assert_uint_eq(redis_connection_count(redis), 1);
        for (int i = 0; i < 100; i++)
                ck_assert_int_eq(ask(), 0);
        ck_assert_uint_eq(n_replies, 0);
        run_until(n_replies == 100);
        ck_assert_uint_eq(n_failures, 0);
        ck_assert_uint_gt(redis_rtt_usec(redis), 0);
}

TEST(waits_for_a_server_that_is_not_there_yet)
{
        start();
        run_until(is_down());
        assert_error("no server");
        server_start(0, NULL, NULL);
        run_until(is_up());
        ck_assert_ptr_null(redis_error(redis));
}

TEST(logs_in_with_the_password_of_the_settings)
{
        server_start(0, "--requirepass", "hunter2");
        settings.password = (char *)"hunter2";
        start();
        run_until(is_up());
}

TEST(prefers_user_and_password_of_the_url)
{
        char url[128];

        server_start(0, NULL, NULL);
        server_wait();
        server_do("ACL SETUSER worker on >p@ss ~* +@all");
        snprintf(url, sizeof(url), "unix://worker:p%%40ss@%s?db=3", server_socket);
        settings.password = (char *)"wrong";
        settings.username = (char *)"nobody";
        settings.url = url;
        start();
        run_until(is_up());

        static const char *const argv[] = {"SET", "here", "1"};
        ck_assert_int_eq(redis_command(redis, on_reply, &n_replies, 3, argv, NULL), 0);
        run_until(n_replies == 1);
        redisReply *reply = server_ask("EXISTS here");
        ck_assert_int_eq(reply->integer, 0); /* it is in database 3 */
        freeReplyObject(reply);
}

static const struct {
        const char *option, *value, *username, *password, *url_suffix, *error;
} refusals[] = {
        {"--requirepass", "hunter2", NULL, NULL, "", "a password is missing"},
        {"--requirepass", "hunter2", NULL, "hunter3", "", "a wrong password"},
        {NULL, NULL, NULL, "hunter3", "", "a password for a server without"},
        {NULL, NULL, "nobody", "hunter3", "", "an unknown user"},
        {NULL, NULL, NULL, NULL, "?db=99", "a database that is not there"},
};

TEST_LOOP(says_why_it_is_refused, ELEMENTSOF(refusals))
{
        char url[128];

        server_start(0, refusals[_i].option, refusals[_i].value);
        snprintf(url, sizeof(url), "%s%s", server_url, refusals[_i].url_suffix);
        settings.url = url;
        settings.username = (char *)refusals[_i].username;
        settings.password = (char *)refusals[_i].password;
        start();
        run_until(is_down() && !strstr(last_error, "cannot connect"));
        assert_error(refusals[_i].error);
        ck_assert_ptr_null(strstr(last_error, "hunter"));
}

TEST(says_that_an_acl_stands_in_its_way)
{
        server_start(0, NULL, NULL);
        server_wait();
        server_do("ACL SETUSER default -exists");
        start();
        run_until(is_down());
        assert_error("ACL");
}

TEST(comes_back_after_the_server_was_killed)
{
        connect_to_server();
        ck_assert_int_eq(kill(server_pid, SIGSTOP), 0);
        ck_assert_int_eq(ask(), 0);
        ck_assert_int_eq(ask(), 0);
        server_kill();
        run_until(is_down());
        assert_error("connection lost");
        ck_assert_uint_eq(n_failures, 2);
        ck_assert_int_eq(ask(), -ENOTCONN);
        ck_assert_uint_eq(redis_rtt_usec(redis), 0);

        server_start(0, NULL, NULL);
        run_until(is_up());
        ck_assert_int_eq(ask(), 0);
        run_until(n_replies == 1);
        ck_assert_uint_eq(n_failures, 2);
        ck_assert_uint_eq(redis_connection_count(redis), 2);
}

TEST(notices_a_death_while_nobody_asks)
{
        connect_to_server();
        server_kill();
        run_until(is_down());
        assert_error("connection lost");
}

TEST(notices_a_frozen_server_while_nobody_asks)
{
        hurry();
        connect_to_server();
        ck_assert_int_eq(kill(server_pid, SIGSTOP), 0);
        run_until(is_down());
        assert_error("no reply");
}

TEST(gives_up_a_frozen_server_and_takes_it_back)
{
        hurry();
        connect_to_server();
        ck_assert_int_eq(kill(server_pid, SIGSTOP), 0);
        ck_assert_int_eq(ask(), 0);
        run_until(is_down());
        ck_assert_int_eq(last_state, READER_STATE_SLOW);
        assert_error("no reply");
        ck_assert_uint_eq(n_failures, 1);
        ck_assert_int_eq(kill(server_pid, SIGCONT), 0);
        /* Where the machine is slow it is given up again, and taken back again. */
        do {
                run_until(is_up());
                n_failures = 0;
                ck_assert_int_eq(ask(), 0);
                run_until(n_replies + n_failures == 1);
        } while (n_replies == 0);
}

/* A server that says `greeting` to whoever connects, and `answer` to each message. */
static void start_impostor(const char *greeting, const char *answer)
{
        int fd = unit_listen(server_socket, 0);

        server_pid = unit_fork_bound();
        if (server_pid > 0) {
                close_fd(fd);
                return;
        }
        for (;;) {
                char buffer[512];
                int client = accept(fd, NULL, NULL);
                if (greeting)
                        (void)send(client, greeting, strlen(greeting), MSG_NOSIGNAL);
                while (answer && recv(client, buffer, sizeof(buffer), 0) > 0)
                        (void)send(client, answer, strlen(answer), MSG_NOSIGNAL);
                close_fd(client);
        }
}

static const struct {
        const char *greeting, *answer, *error;
} impostors[] = {
        {NULL, NULL, "connection lost"},
        {"", "HTTP/1.1 400 Bad Request\r\n\r\n", "connection lost"},
        {"", "+OK\r\n", "another server"},
        {"", "$3\r\nfoo\r\n", "another server"},
        {"", ":1\r\n:1\r\n:1\r\n", "an answer too many"},
        {"", "$-7\r\n", NULL},
        {"", "*10000000\r\n", "too many elements"},
        {"", "*2147483646\r\n", "too many elements"},
        {"", "$314572800\r\n", "too many bytes"},
        {"", "*-7\r\n", NULL},
        {"", "\r\n\r\n", "connection lost"},
        {"", "-LOADING Redis is loading the dataset in memory\r\n", "LOADING"},
        {"", "-NOAUTH Authentication required.\r\n", "a password is missing"},
        {"", "-NOPERM this user has no permissions\r\n", "ACL"},
        {"", "-READONLY You can't write against a read only replica.\r\n", "READONLY"},
        {"", "-MASTERDOWN Link with MASTER is down\r\n", "MASTERDOWN"},
        {"", "-ERR \x1b[2J nonsense\r\n", "nonsense"},
        {"SSH-2.0-OpenSSH_9.2p1\r\n", "", "connection lost"},
        {"+OK\r\n+OK\r\n+OK\r\n+OK\r\n", "", NULL},
        {"-ERR max number of clients reached\r\n", NULL, NULL},
        {"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n", "", NULL},
};

TEST_LOOP(survives_those_who_are_no_redis, ELEMENTSOF(impostors))
{
        start_impostor(impostors[_i].greeting, impostors[_i].answer);
        if (!impostors[_i].error)
                settings.timeout = USEC_PER_SEC;
        start();
        run_until(is_down());
        if (impostors[_i].error)
                assert_error(impostors[_i].error);
        if (impostors[_i].error && strcmp(impostors[_i].error, "nonsense") == 0)
                ck_assert_str_eq(quoted_reveal(&redis_error(redis)->quoted), "ERR ?[2J nonsense");
        server_kill();
        server_start(0, NULL, NULL);
        run_until(is_up());
}

/* The test itself is the server. Answers the log-in, the next one too where one was given up. Returns the
 * connection that is up. */
static int let_log_in(int listener)
{
        char buffer[512];
        int client = -1;

        while (!is_up()) {
                int next = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

                if (next >= 0) {
                        close_fd(client);
                        client = next;
                }
                if (client >= 0 && recv(client, buffer, sizeof(buffer), MSG_DONTWAIT) > 0)
                        (void)send(client, ":1\r\n", 4, MSG_NOSIGNAL);
                ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
        }
        return client;
}

/* Each is in the order in which it was asked. */
static char replies[64];

static void note_reply(struct redis *r _unused_, const struct redisReply *reply, void *userdata)
{
        const char *what = "lost";

        if (reply && reply->type != REDIS_REPLY_ERROR)
                what = "ok";
        else if (reply)
                what = strstr(reply->str, "'GETRANGE big' was too large; this") ? "left" : reply->str;
        size_t length = strlen(replies);

        snprintf(replies + length, sizeof(replies) - length, "%s%s", (const char *)userdata, what);
}

/* Asks for what is there and for what is too large, in one. */
static void ask_for_too_much(void)
{
        static const char *const small[] = {"GET", "small"}, *const large[] = {"GETRANGE", "big", "0", "-1"},
                                 *const part[] = {"GETRANGE", "big", "0", "9"};

        ck_assert_int_eq(redis_command(redis, note_reply, (void *)" ", 2, small, NULL), 0);
        ck_assert_int_eq(redis_command(redis, note_reply, (void *)" ", 4, large, NULL), 0);
        ck_assert_int_eq(redis_command(redis, note_reply, (void *)" ", 4, part, NULL), 0);
        ck_assert_int_eq(redis_command(redis, note_reply, (void *)".", 2, small, NULL), 0);
        run_until(strchr(replies, '.'));
}

TEST(leaves_out_what_was_too_large)
{
        server_start(0, NULL, NULL);
        server_wait();
        server_do("SETRANGE big 40000000 x");
        server_do("SET small 1");
        start();
        run_until(is_up());
        ask_for_too_much();
        ck_assert_str_eq(replies, " ok lost lost.lost");
        assert_error("a reply that is too large");

        run_until(is_up());
        for (unsigned i = 0; i < 3; i++) {
                replies[0] = '\0';
                ask_for_too_much();
                ck_assert_str_eq(replies, " ok left ok.ok");
        }
        ck_assert_uint_eq(redis_connection_count(redis), 2);
}

TEST(asks_again_for_what_was_too_large_after_a_while)
{
        struct oversized oversized = {0};
        struct question first = question_of(2, (const char *const[]){"GET", "0"}, NULL), last = first;

        oversized_add(&oversized, &first, 1);
        ck_assert(oversized_has(&oversized, &first));
        oversized_expire(&oversized, OVERSIZED_USEC);
        ck_assert(oversized_has(&oversized, &first));
        oversized_expire(&oversized, OVERSIZED_USEC + 1);
        ck_assert(!oversized_has(&oversized, &first));
        /* No more are kept than there is room for: the newest. */
        for (unsigned i = 0; i <= OVERSIZED_MAX; i++) {
                char key[16];

                snprintf(key, sizeof(key), "%u\t", i);
                last = question_of(2, (const char *const[]){"GET", key}, NULL);
                oversized_add(&oversized, i == 0 ? &first : &last, 1);
        }
        ck_assert(!oversized_has(&oversized, &first));
        ck_assert(oversized_has(&oversized, &last));
        ck_assert_str_eq(last.text, "GET 128?");
        ck_assert_uint_ne(question_of(2, (const char *const[]){"a", "bc"}, NULL).hash,
                          question_of(2, (const char *const[]){"ab", "c"}, NULL).hash);
        /* Nor is one left out for another whose hash was made to be the same. */
        first.hash = last.hash;
        ck_assert(!oversized_has(&oversized, &first));
}

TEST(survives_a_reply_to_nothing)
{
        int listener = unit_listen(server_socket, SOCK_NONBLOCK);

        start();
        int client = let_log_in(listener);
        ck_assert_int_eq(send(client, "+OK\r\n", 5, 0), 5);
        run_until(is_down());
        assert_error("a reply to nothing");
        close_fd(client);
        close_fd(listener);
}

static void run_for(usec_t usec)
{
        usec_t end = clock_now(CLOCK_MONOTONIC) + usec;

        while (clock_now(CLOCK_MONOTONIC) < end)
                ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
}

/* Each part is in time, and all of them together take twice the timeout. */
TEST(waits_for_the_end_of_a_reply_that_arrives_slowly)
{
        static const char parts[] = "$8\r\n12345678\r\n";
        int listener = unit_listen(server_socket, SOCK_NONBLOCK);

        settings.timeout = 2 * USEC_PER_SEC;
        start();
        int client = let_log_in(listener);
        ck_assert_int_eq(ask(), 0);
        for (size_t i = 0; i < strlen(parts); i++) {
                ck_assert_int_eq(send(client, &parts[i], 1, 0), 1);
                run_for(2 * settings.timeout / strlen(parts));
        }
        run_until(n_replies == 1);
        ck_assert_uint_eq(n_failures, 0);
        close_fd(client);
        close_fd(listener);
}

TEST(does_not_wait_for_ever_for_the_end_of_a_reply)
{
        int listener = unit_listen(server_socket, SOCK_NONBLOCK);

        hurry();
        start();
        int client = let_log_in(listener);
        ck_assert_int_eq(ask(), 0);
        ck_assert_int_eq(send(client, "$999\r\n", 6, 0), 6);
        while (!is_down()) {
                (void)send(client, "x", 1, MSG_NOSIGNAL);
                run_for(settings.timeout / 10);
        }
        assert_error("no reply");
        close_fd(client);
        close_fd(listener);
}

TEST_LOOP(frees_itself_when_a_state_is_reported, 2)
{
        free_at_state = true;
        if (_i == 0)
                server_start(0, NULL, NULL);
        start();
        run_until(!redis);
        ck_assert_uint_eq(n_states, 1);
}

TEST_LOOP(frees_itself_in_a_reply, 2)
{
        connect_to_server();
        n_states = 0;
        free_at_reply = true;
        for (int i = 0; i < 10; i++)
                ck_assert_int_eq(ask(), 0);
        if (_i == 1)
                server_kill();
        run_until(!redis);
        ck_assert_uint_eq(n_replies + n_failures, 10);
        ck_assert_uint_eq(n_replies, _i == 0 ? 1 : 0);
        ck_assert_uint_eq(n_states, 0); /* the callback of a freed object is not called */
}

TEST(calls_back_when_it_is_freed)
{
        connect_to_server();
        ck_assert_int_eq(ask(), 0);
        ck_assert_int_eq(ask(), 0);
        redis = redis_free(redis);
        ck_assert_uint_eq(n_failures, 2);
}

/* connect() of a Unix socket does not wait for such a server. */
TEST(a_unix_socket_that_accepts_nothing_is_down_until_it_does)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int clients[8] = {0};
        size_t n = 0;

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", server_socket);
        (void)unlink(server_socket);
        int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
        ck_assert_int_eq(listen(listener, 0), 0);
        do {
                ck_assert_uint_lt(n, ELEMENTSOF(clients));
                clients[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        } while (connect(clients[n++], (struct sockaddr *)&address, sizeof(address)) == 0);
        ck_assert_int_eq(errno, EAGAIN);
        start();
        run_until(is_down());
        ck_assert_str_eq(last_error, "cannot connect: Resource temporarily unavailable");
        while (n > 0)
                close_fd(clients[--n]);
        close_fd(listener);
        server_start(0, NULL, NULL);
        run_until(is_up());
}

TEST_LOOP(tries_each_address_of_a_name, 2)
{
        char url[64];
        int port = server_start_with_port();

        /* localhost may be ::1 too, where this server does not listen. */
        snprintf(url, sizeof(url), "redis://%s:%d", _i == 0 ? "localhost" : "127.0.0.1", port);
        settings.url = url;
        start();
        run_until(is_up());
        ck_assert_int_eq(ask(), 0);
        run_until(n_replies == 1);
}

TEST(gives_up_an_address_that_does_not_answer)
{
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t len = sizeof(address);
        char url[64];
        int many_hosts[8];

        /* A listener with a full queue lets those who come later wait. */
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, len), 0);
        ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &len), 0);
        ck_assert_int_eq(listen(listener, 0), 0);
        for (size_t i = 0; i < ELEMENTSOF(many_hosts); i++) {
                many_hosts[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
                (void)connect(many_hosts[i], (struct sockaddr *)&address, len);
        }
        snprintf(url, sizeof(url), "redis://127.0.0.1:%d", ntohs(address.sin_port));
        settings.url = url;
        hurry();
        start();
        run_until(is_down());
        assert_error("no answer to connect");
        for (size_t i = 0; i < ELEMENTSOF(many_hosts); i++)
                close_fd(many_hosts[i]);
        close_fd(listener);
}

TEST(says_that_a_name_is_not_found)
{
        settings.url = (char *)"redis://no-such-host.invalid";
        start();
        run_until(is_down());
        ck_assert_ptr_nonnull(strstr(last_error, "'no-such-host.invalid'"));
        redis = redis_free(redis);
}

TEST(can_be_freed_while_a_name_is_looked_up)
{
        settings.url = (char *)"redis://no-such-host.invalid";
        start();
        ck_assert_int_ge(sd_event_run(event, USEC_PER_SEC), 0);
        redis = redis_free(redis);
}

TEST(refuses_urls_that_it_cannot_serve)
{
        settings.url = (char *)"redis://";
        ck_assert_int_eq(redis_new(event, &settings, NULL, NULL, NULL, &redis), -EINVAL);
        ck_assert_ptr_null(redis);
}

TEST(reports_addresses_from_names)
{
        ck_assert(resolve_is_numeric("127.0.0.1"));
        ck_assert(resolve_is_numeric("::1"));
        ck_assert(!resolve_is_numeric("localhost"));
}

/* Starts a connection that checks writes. */
static void connect_to_check(void)
{
        server_start(0, NULL, NULL);
        server_wait();
        server_do("CONFIG SET %s %s", "maxmemory-policy", "noeviction");
        start();
        ck_assert_int_eq(redis_probe(redis, "processes"), 0);
}

static bool is_refusing(void)
{
        return last_state == READER_STATE_REFUSING;
}

/* A poll, as often as the loop runs. */
static bool polls_until(bool (*is)(void))
{
        if (!is())
                (void)ask();
        return is();
}

TEST(sees_whether_the_server_accepts_writes)
{
        connect_to_check();
        run_until(is_up());
        server_do("CONFIG SET maxmemory %s", "1");
        run_until(polls_until(is_refusing));
        assert_error("full memory");
        ck_assert_ptr_nonnull(strstr(quoted_reveal(&redis_error(redis)->quoted), "OOM"));
        /* Commands that read are answered. */
        unsigned before = n_replies;
        ck_assert_int_eq(ask(), 0);
        run_until(n_replies > before);
        server_do("CONFIG SET maxmemory %s", "0");
        run_until(polls_until(is_up));
        server_do("REPLICAOF %s %s", "127.0.0.1", "1");
        run_until(polls_until(is_refusing));
        assert_error("a replica");
        /* Nothing was written. */
        server_do("REPLICAOF %s %s", "NO", "ONE");
        redisReply *reply = server_ask("DBSIZE");
        ck_assert_ptr_nonnull(reply);
        ck_assert_int_eq(reply->integer, 0);
        freeReplyObject(reply);
}

TEST(begins_with_a_server_that_refuses_writes)
{
        connect_to_check();
        server_do("CONFIG SET maxmemory %s", "1");
        run_until(last_state != READER_STATE_CONNECTING);
        ck_assert_int_eq(last_state, READER_STATE_REFUSING);
}

TEST(whether_writes_are_accepted_may_be_unknown)
{
        connect_to_check();
        server_do("ACL SETUSER default -setrange");
        server_do("CONFIG SET maxmemory %s", "1");
        run_until(is_up());
        usec_t until = clock_now(CLOCK_MONOTONIC) + 3 * USEC_PER_SEC;
        run_until(polls_until(is_refusing) || clock_now(CLOCK_MONOTONIC) > until);
        ck_assert(is_up());
        /* Not asked again and again: each attempt would be a line in the log of the ACL. */
        redisReply *reply = server_ask("ACL LOG");
        ck_assert_ptr_nonnull(reply);
        ck_assert_uint_eq(reply->elements, 1);
        ck_assert_int_eq(reply->element[0]->element[1]->integer, 1);
        freeReplyObject(reply);
}

TEST_MAIN("redis", .each = {setup, teardown}, .once = {server_directory_make, server_directory_remove},
          .is_missing = server_is_missing)
