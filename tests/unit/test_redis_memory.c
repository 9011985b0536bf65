/* SPDX-License-Identifier: MIT */
/* Do all connections to Redis together keep within their memory, whatever servers send, and are ordinary
 * replies delivered all the while? */
/* promises: P5 */
#include "redis/memory_share.h"
#include "redis/redis.h"
#include "redis/reply_limit.h"
#include "redis_server.h"

#define BIG     ((size_t)30 * 1024 * 1024)
#define CLIENTS 5

struct client {
        struct redis *redis;
        enum reader_state state;
        char error[512];
        int server_end;
        size_t big_replies, small_replies, failures;
};

static struct client clients[CLIENTS];
static struct redis_settings settings;
static int listener;
static char piece[1 << 20];

static void setup(void)
{
        loop_start();
        /* Replies wait for each other: with sanitizers, on a busy machine, longer than SERVER_PATIENCE. */
        settings = (struct redis_settings){.url = server_url, .timeout = 10 * USEC_PER_MIN};
        listener = unit_listen(server_socket, SOCK_NONBLOCK);
        memset(piece, 'x', sizeof(piece));
        FOREACH_ELEMENT(client, clients)
                *client = (struct client){.server_end = -1};
}

static void teardown(void)
{
        FOREACH_ELEMENT(client, clients) {
                client->redis = redis_free(client->redis);
                close_fd(client->server_end);
        }
        close_fd(listener);
        ck_assert_uint_eq(memory_shares_counted(), 0);
        loop_end();
}

static void on_state(struct redis *redis _unused_, enum reader_state state, const struct error_report *error,
                     void *userdata)
{
        struct client *client = userdata;

        client->state = state;
        if (error)
                snprintf(client->error, sizeof(client->error), "%s", error->text);
}

static void on_reply(struct redis *redis _unused_, const struct redisReply *reply, void *userdata)
{
        struct client *client = userdata;

        if (!reply)
                client->failures++;
        else if (reply->type == REDIS_REPLY_STRING && reply->len == BIG)
                client->big_replies++;
        else
                client->small_replies++;
}

static void ask(struct client *client)
{
        static const char *const argv[] = {"GET", "big"};

        ck_assert_int_eq(redis_command(client->redis, on_reply, client, 2, argv, NULL), 0);
}

/* Answers the log-in of the only one that connects. */
static void let_log_in(struct client *client)
{
        char buffer[512];

        close_fd(client->server_end);
        run_until((client->server_end = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0);
        run_until(recv(client->server_end, buffer, sizeof(buffer), MSG_DONTWAIT) > 0);
        ck_assert_int_eq(send(client->server_end, ":1\r\n", 4, MSG_NOSIGNAL), 4);
        run_until(client->state == READER_STATE_CONNECTED);
}

static void begin(struct client *client)
{
        ck_assert_int_eq(redis_new(event, &settings, NULL, on_state, client, &client->redis), 0);
        let_log_in(client);
}

/* Sends n bytes, or fewer if the client hangs up, and ignores what the client sends. */
static void send_bytes(struct client *client, const char *bytes, size_t n)
{
        char commands[4096];

        while (n > 0 && client->state == READER_STATE_CONNECTED) {
                ssize_t sent =
                        send(client->server_end, bytes, MIN(n, sizeof(piece)), MSG_DONTWAIT | MSG_NOSIGNAL);

                if (sent > 0)
                        n -= (size_t)sent;
                (void)recv(client->server_end, commands, sizeof(commands), MSG_DONTWAIT);
                ck_assert_int_ge(sd_event_run(event, 0), 0);
        }
}

static void announce(struct client *client)
{
        char header[32];

        snprintf(header, sizeof(header), "$%zu\r\n", BIG);
        send_bytes(client, header, strlen(header));
}

static int count(sd_event_source *source _unused_, void *userdata)
{
        ++*(unsigned *)userdata;
        return 0;
}

/* Clients of sqmgr have this priority. */
TEST(a_large_reply_waits_for_clients_and_a_small_one_does_not)
{
        struct client *client = &clients[0];
        sd_event_source *waiting;
        unsigned served = 0;

        begin(client);
        ck_assert_int_eq(sd_event_add_defer(event, &waiting, count, &served), 0);
        ck_assert_int_ge(sd_event_source_set_priority(waiting, SD_EVENT_PRIORITY_NORMAL + 10), 0);
        ck_assert_int_ge(sd_event_source_set_enabled(waiting, SD_EVENT_OFF), 0);
        ask(client);
        ask(client);
        announce(client);
        send_bytes(client, piece, BIG / 2);
        for (unsigned i = 0; i < 100; i++)
                ck_assert_int_ge(sd_event_run(event, 0), 0);
        ck_assert_int_ge(sd_event_source_set_enabled(waiting, SD_EVENT_ON), 0);
        ck_assert_int_eq(send(client->server_end, piece, 100, MSG_NOSIGNAL), 100);
        for (unsigned i = 0; i < 5; i++)
                ck_assert_int_ge(sd_event_run(event, 0), 0);
        ck_assert_uint_eq(served, 5);
        ck_assert_int_ge(sd_event_source_set_enabled(waiting, SD_EVENT_OFF), 0);
        send_bytes(client, piece, BIG - BIG / 2 - 100);
        for (unsigned i = 0; i < 100; i++)
                ck_assert_int_ge(sd_event_run(event, 0), 0);
        send_bytes(client, "\r\n", 2);
        run_until(client->big_replies == 1);

        ck_assert_int_ge(sd_event_source_set_enabled(waiting, SD_EVENT_ON), 0);
        ck_assert_int_eq(send(client->server_end, ":1\r\n", 4, MSG_NOSIGNAL), 4);
        ck_assert_int_ge(sd_event_run(event, 0), 0);
        ck_assert_uint_eq(client->small_replies, 1);
        ck_assert_uint_eq(served, 5);
        sd_event_source_disable_unref(waiting);
}

TEST(shares_are_bounded_together)
{
        struct memory_share shares[3] = {0};

        ck_assert(memory_share_set(&shares[0], MEMORY_SHARE_FREE_BYTES));
        ck_assert_uint_eq(memory_shares_counted(), 0);
        ck_assert(!memory_share_set(&shares[0], SIZE_MAX));
        ck_assert(memory_share_set(&shares[0], MEMORY_SHARE_FREE_BYTES + MEMORY_SHARES_BYTES_MAX - 1));
        ck_assert(memory_share_set(&shares[1], MEMORY_SHARE_FREE_BYTES + 1));
        ck_assert_uint_eq(memory_shares_counted(), MEMORY_SHARES_BYTES_MAX);
        ck_assert(!memory_share_set(&shares[2], MEMORY_SHARE_FREE_BYTES + 1));
        ck_assert_uint_eq(shares[2].bytes, 0);
        ck_assert(memory_share_set(&shares[2], MEMORY_SHARE_FREE_BYTES));
        ck_assert(!memory_share_set(&shares[1], MEMORY_SHARE_FREE_BYTES + 2));
        ck_assert(memory_share_set(&shares[0], 0));
        ck_assert(memory_share_set(&shares[2], MEMORY_SHARE_FREE_BYTES + 1));
        ck_assert_uint_eq(memory_shares_counted(), 2);
        ck_assert(memory_share_set(&shares[1], 0));
        ck_assert(memory_share_set(&shares[2], 0));
}

TEST(the_reply_that_does_not_fit_beside_others_ends_its_connection_alone)
{
        struct client *last = &clients[CLIENTS - 1];

        /* A client that waits for no reply would send PING, whose reply it would take the next one for. */
        FOREACH_ELEMENT(client, clients) {
                begin(client);
                ask(client);
        }
        FOREACH_ELEMENT(client, clients) {
                announce(client);
                for (size_t sent = 0; sent < BIG; sent += sizeof(piece))
                        send_bytes(client, piece, sizeof(piece));
                ck_assert_uint_le(memory_shares_counted(), MEMORY_SHARES_BYTES_MAX);
        }
        run_until(last->state != READER_STATE_CONNECTED);
        ck_assert_str_eq(last->error, "connection lost: the reply does not fit into the 128 MiB that all "
                                      "connections share");
        ck_assert_uint_eq(last->failures, 1);
        ck_assert_uint_ge(memory_shares_counted(), 3 * BIG);

        /* Other replies of the same server are delivered meanwhile. */
        let_log_in(last);
        ask(last);
        send_bytes(last, "+small\r\n", strlen("+small\r\n"));
        run_until(last->small_replies == 1);
        /* The command is not skipped: the reply itself was not too large. */
        ask(last);

        for (struct client *client = clients; client < last; client++) {
                send_bytes(client, "\r\n", 2);
                run_until(client->big_replies == 1);
                ck_assert_int_eq(client->state, READER_STATE_CONNECTED);
        }
        ck_assert_uint_eq(memory_shares_counted(), 0);
        announce(last);
        for (size_t sent = 0; sent < BIG; sent += sizeof(piece))
                send_bytes(last, piece, sizeof(piece));
        send_bytes(last, "\r\n", 2);
        run_until(last->big_replies == 1);
}

TEST(what_is_announced_takes_nothing)
{
        struct client *first = &clients[0], *last = &clients[CLIENTS - 1];

        FOREACH_ELEMENT(client, clients)
                begin(client);
        for (struct client *client = first; client < last; client++) {
                ask(client);
                announce(client);
                send_bytes(client, piece, 100);
                ck_assert_uint_eq(memory_shares_counted(), 0);
        }
        ask(last);
        announce(last);
        for (size_t sent = 0; sent < BIG; sent += sizeof(piece))
                send_bytes(last, piece, sizeof(piece));
        send_bytes(last, "\r\n", 2);
        run_until(last->big_replies == 1);
}

/* Commands that the server does not take are in memory, too. */
TEST(unsent_commands_are_bounded)
{
        struct client *client = &clients[0];
        static char value[16 << 20];
        const char *const argv[] = {"SET", "big", value};
        const size_t lengths[] = {3, 3, sizeof(value)};
        size_t n = 0;
        int r;

        begin(client);
        do {
                r = redis_command(client->redis, on_reply, client, 3, argv, lengths);
                n += r == 0;
        } while (r == 0);
        ck_assert_int_eq(r, -ENOMEM);
        ck_assert_uint_ge(n, 2);
        ck_assert_uint_lt(n, MEMORY_SHARES_BYTES_MAX / sizeof(value) + 1);
        ck_assert_int_eq(client->state, READER_STATE_CONNECTED);
        client->redis = redis_free(client->redis);
        ck_assert_uint_eq(client->failures, n);
}

/* A reply of many small replies in one, and many replies in one piece, each for a command. */
TEST(many_tiny_replies_are_delivered)
{
        struct client *client = &clients[0];
        enum { N = 10000 };

        begin(client);
        for (unsigned i = 0; i < N; i++)
                ask(client);
        for (unsigned i = 0; i < N; i++)
                send_bytes(client, "+OK\r\n", 5);
        run_until(client->small_replies == N);
        ask(client);
        send_bytes(client, "*262144\r\n", strlen("*262144\r\n"));
        for (unsigned i = 0; i < 262144 / 16; i++)
                send_bytes(client,
                           ":1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:"
                           "1\r\n:1\r\n:1\r\n",
                           64);
        run_until(client->small_replies == N + 1);
        ck_assert_uint_eq(memory_shares_counted(), 0);
}

TEST_MAIN("memory of connections", .each = {setup, teardown},
          .once = {server_directory_make, server_directory_remove})
