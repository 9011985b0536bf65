/* SPDX-License-Identifier: MIT */
/* Bounds on what a client may do: time, room, streams. Over a real socket pair, through libmicrohttpd. */
#include "loop.h"
#include "web/http.h"
#include <malloc.h>

#define BRIEF_USEC (100 * USEC_PER_MSEC)
/* Room for ten, and no time limit. */
static const struct http_limits wide = {
        .connections = 10,
        .streams = 10,
        .wait_usec = USEC_PER_HOUR,
        .answer_usec = USEC_PER_HOUR,
        .message_usec = USEC_PER_HOUR,
        .unread_bytes = SIZE_MAX,
};

static struct http *http;
static struct stream stream = {.wake = http_wake};
static unsigned answers;  /* given */
static bool waits_always; /* else the first request alone waits */
static struct shared *large;

/* With a text of its own, which is as large as the other one. */
static void answer_anew(struct http_request *request)
{
        _cleanup_shared_ struct shared *text = shared_take(calloc(1, large->size), large->size);

        http_answer(request, &(struct http_answer){.status = 200, .type = "text/plain", .text = text});
}

static void on_answer(void *userdata _unused_, struct http_request *request, const char *path)
{
        answers++;
        if (strcmp(path, "/stream") == 0)
                (void)http_stream(request, &stream);
        else if (strcmp(path, "/large-stream") == 0)
                stream_send_first(http_stream(request, &stream), large);
        else if (strcmp(path, "/new") == 0)
                answer_anew(request);
        else if (strcmp(path, "/large") == 0)
                http_answer(request,
                            &(struct http_answer){.status = 200, .type = "text/plain", .text = large});
        else if (strcmp(path, "/wait") == 0 && (answers == 1 || waits_always))
                http_wait(request);
        else
                http_answer_sentence(request, 200, "ok");
}

static void start(const struct http_limits *limits)
{
        answers = 0;
        (void)signal(SIGPIPE, SIG_IGN);
        large = shared_take(malloc(8 << 20), 8 << 20);
        memset(large->data, 'x', large->size);
        ck_assert_int_ge(sd_event_new(&event), 0);
        ck_assert_int_eq(http_new(&http, event, limits, on_answer, NULL), 0);
}

static void teardown(void)
{
        http = http_free(http);
        stream_done(&stream);
        large = shared_drop(large);
        event = sd_event_unref(event);
}

static int connect_from(const void *peer, socklen_t size)
{
        int fds[2];

        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        /* The server writes again soon after the client has read. */
        ck_assert_int_eq(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &(int){8192}, sizeof(int)), 0);
        ck_assert_int_eq(http_add(http, fds[0], peer, size), 0);
        http_run(http);
        return fds[1];
}

static int connect_client(void)
{
        return connect_from(&(struct sockaddr_un){.sun_family = AF_UNIX}, sizeof(struct sockaddr_un));
}

/* As if from 192.0.2.N. */
static int connect_from_host(unsigned n)
{
        struct sockaddr_in peer = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000200 + n)};

        return connect_from(&peer, sizeof(peer));
}

static void log_message(int fd, const char *text)
{
        ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void get(int fd, const char *path)
{
        char text[128];

        snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
        log_message(fd, text);
}

/* Runs the loop until something can be read, or the other end has hung up. Returns what recv() returns. */
static ssize_t hear(int fd, char *text, size_t size)
{
        for (;;) {
                ssize_t n = recv(fd, text, size - 1, MSG_DONTWAIT);

                if (n >= 0)
                        text[n] = '\0';
                if (n >= 0 || errno != EAGAIN)
                        return n;
                ck_assert_int_ge(sd_event_run(event, USEC_PER_SEC), 0);
        }
}

static void expect(int fd, const char *begin)
{
        char text[4096];

        ck_assert_int_gt(hear(fd, text, sizeof(text)), 0);
        ck_assert_msg(strncmp(text, begin, strlen(begin)) == 0, "%s", text);
}

static void get_ok(int fd, const char *path)
{
        get(fd, path);
        expect(fd, "HTTP/1.1 200 OK\r\n");
}

static void expect_end(int fd)
{
        char text[65536];
        ssize_t n;

        while ((n = hear(fd, text, sizeof(text))) > 0)
                ;
        (void)close(fd);
}

TEST(half_a_request_is_waited_for_so_long)
{
        struct http_limits limits = wide;

        limits.wait_usec = BRIEF_USEC;
        start(&limits);
        int half = connect_client(), idle = connect_client(), kept = connect_client();
        get_ok(kept, "/");
        log_message(half, "GET / HTTP/1.1\r\nHost: loc");
        expect_end(half);
        expect_end(idle);
        expect_end(kept);
        run_until(http_count(http).connections == 0);
        ck_assert_uint_eq(http_count(http).refused, 3);
}

TEST(an_answer_must_be_taken_in_time)
{
        struct http_limits limits = wide;

        limits.answer_usec = BRIEF_USEC;
        limits.message_usec = BRIEF_USEC;
        start(&limits);
        int slow = connect_client(), watching = connect_client();
        get(slow, "/large");
        get_ok(watching, "/stream");
        run_until(http_count(http).refused > 0);
        expect_end(slow);
        /* Who has all that there is of a stream is not late. */
        ck_assert_uint_eq(http_count(http).streams, 1);
        stream_publish(&stream, large);
        expect(watching, "");
        /* Who takes none of what comes then is. */
        run_until(http_count(http).streams == 0);
        expect_end(watching);
        ck_assert_uint_eq(large->holders, 2);
        ck_assert_ptr_eq(stream.newest, large);
}

/* The client reads a little of the message now and then. */
TEST(a_whole_message_must_be_read_in_time)
{
        struct http_limits limits = wide;
        char text[1000];

        limits.message_usec = BRIEF_USEC;
        start(&limits);
        int client = connect_client();
        get_ok(client, "/large-stream");
        while (http_count(http).refused == 0) {
                (void)recv(client, text, sizeof(text), MSG_DONTWAIT);
                ck_assert_int_ge(sd_event_run(event, 5 * USEC_PER_MSEC), 0);
        }
        ck_assert_uint_eq(http_count(http).streams, 0);
        expect_end(client);
}

TEST(the_oldest_stream_makes_room_for_another)
{
        struct http_limits limits = wide;
        int clients[3];

        limits.streams = 2;
        start(&limits);
        for (unsigned i = 0; i < 3; i++) {
                clients[i] = connect_client();
                get_ok(clients[i], "/stream");
                ck_assert_uint_eq(http_count(http).streams, MIN(i + 1, 2));
        }
        expect_end(clients[0]);
        ck_assert_uint_eq(http_count(http).refused, 1);
        /* The others are sent what comes. */
        stream_publish(&stream, large);
        expect(clients[1], "");
        expect(clients[2], "");
        /* The library notices a client that has gone as it writes to it. */
        (void)close(clients[1]);
        while (http_count(http).streams == 2) {
                stream_publish(&stream, large);
                ck_assert_int_ge(sd_event_run(event, USEC_PER_SEC), 0);
        }
        (void)close(clients[2]);
}

/* As if from 2001:db8:700:N::M. */
static int connect_from_network(unsigned n, unsigned m)
{
        struct sockaddr_in6 peer = {.sin6_family = AF_INET6, .sin6_addr.s6_addr = {0x20, 1, 0xd, 0xb8, 7}};

        peer.sin6_addr.s6_addr[7] = (uint8_t)n;
        peer.sin6_addr.s6_addr[15] = (uint8_t)m;
        return connect_from(&peer, sizeof(peer));
}

/* Four streams come from one address, for IPv6 from one network: the oldest of them is ended, not the older
 * one from another address. */
TEST_LOOP(a_stream_of_the_address_with_the_most_makes_room, 2)
{
        struct http_limits limits = wide;
        static const unsigned hosts[] = {1, 2, 2, 2, 2};
        int clients[ELEMENTSOF(hosts)];

        limits.streams = 4;
        start(&limits);
        for (size_t i = 0; i < ELEMENTSOF(hosts); i++) {
                clients[i] =
                        _i == 0 ? connect_from_host(hosts[i]) : connect_from_network(hosts[i], (unsigned)i);
                get_ok(clients[i], "/stream");
        }
        expect_end(clients[1]);
        ck_assert_uint_eq(http_count(http).streams, 4);
        stream_publish(&stream, large);
        expect(clients[0], "");
        for (size_t i = 0; i < ELEMENTSOF(hosts); i++)
                if (i != 1)
                        (void)close(clients[i]);
}

/* Each client keeps another text in memory. */
TEST(texts_that_slow_clients_keep_are_bounded)
{
        struct http_limits limits = wide;
        int clients[5];

        limits.unread_bytes = 20 << 20;
        start(&limits);
        for (size_t i = 0; i < ELEMENTSOF(clients); i++) {
                clients[i] = connect_client();
                get_ok(clients[i], i == 4 ? "/large" : "/new");
                /* The next client begins later. */
                while (sd_event_run(event, USEC_PER_MSEC) > 0)
                        ;
        }
        run_until(http_count(http).refused >= 3);
        for (size_t i = 0; i < 3; i++)
                expect_end(clients[i]);
        for (unsigned i = 0; i < 20; i++)
                ck_assert_int_ge(sd_event_run(event, 100 * USEC_PER_MSEC), 0);
        ck_assert_uint_eq(http_count(http).refused, 3);
        (void)close(clients[3]);
        (void)close(clients[4]);
}

/* Clients send several requests at once. */
TEST(requests_per_turn_are_bounded)
{
        int clients[8];
        unsigned turns = 0;

        start(&wide);
        for (size_t i = 0; i < ELEMENTSOF(clients); i++)
                clients[i] = connect_client();
        for (size_t i = 0; i < ELEMENTSOF(clients); i++)
                for (unsigned k = 0; k < 4; k++)
                        get(clients[i], "/");
        while (answers < 4 * ELEMENTSOF(clients)) {
                unsigned before = answers;

                http_run(http);
                ck_assert_uint_le(answers - before, 2 * ELEMENTSOF(clients));
                turns++;
        }
        ck_assert_uint_ge(turns, 2);
        for (size_t i = 0; i < ELEMENTSOF(clients); i++)
                (void)close(clients[i]);
}

TEST(a_head_opens_no_stream)
{
        start(&wide);
        int client = connect_client();

        log_message(client, "HEAD /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
        expect(client, "HTTP/1.1 200 OK\r\n");
        ck_assert_uint_eq(http_count(http).streams, 0);
        /* The connection is used again. */
        get_ok(client, "/");
        (void)close(client);
}

TEST(what_was_put_off_is_asked_for_anew)
{
        start(&http_default_limits);
        int client = connect_client();

        get(client, "/wait");
        run_until(answers > 0);
        http_resume(http);
        expect(client, "HTTP/1.1 200 OK\r\n");
        ck_assert_uint_eq(answers, 2);
        get_ok(client, "/wait");
        (void)close(client);
}

TEST(all_ends_in_the_midst_of_it)
{
        start(&http_default_limits);
        int clients[] = {connect_client(), connect_client(), connect_client(), connect_client()};

        get(clients[0], "/wait");
        run_until(answers > 0);
        get_ok(clients[1], "/stream");
        get_ok(clients[2], "/large");
        log_message(clients[3], "GET");
        http = http_free(http);
        for (size_t i = 0; i < ELEMENTSOF(clients); i++)
                (void)close(clients[i]);
        ck_assert_uint_eq(large->holders, 1);
        ck_assert(LIST_EMPTY(&stream.viewers));
}

static char folder[] = "/tmp/sqmgr-test.XXXXXX";

/* With room for three, in a folder. */
static struct address start_at_path(void)
{
        struct http_limits room_of_three = wide;
        struct address address = {.size = sizeof(address.path), .path = {.sun_family = AF_UNIX}};
        char error[256];

        unit_make_folder(folder);
        room_of_three.connections = room_of_three.streams = 3;
        start(&room_of_three);
        snprintf(address.path.sun_path, sizeof(address.path.sun_path), "%s/sock", folder);
        ck_assert_msg(http_listen(http, &address, error, sizeof(error)) == 0, "%s", error);
        return address;
}

static void end_at_path(void)
{
        char path[64];

        snprintf(path, sizeof(path), "%s/sock", folder);
        ck_assert_int_eq(access(path, F_OK), 0);
        http = http_free(http);
        ck_assert_int_eq(access(path, F_OK), -1);
        unit_remove_tree(folder);
}

static int connect_to(const struct address *address)
{
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        ck_assert_int_eq(connect(fd, &address->any, address->size), 0);
        return fd;
}

/* Two clients ask without end, and a third one asks once. */
TEST(pipelined_requests_keep_nobody_out)
{
        struct address address = start_at_path();
        int hogs[] = {connect_to(&address), connect_to(&address)}, client = -1;
        char text[65536];
        ssize_t n = -1;

        for (unsigned turn = 0; n < 0; turn++) {
                ck_assert_uint_lt(turn, 100);
                if (turn == 50) {
                        client = connect_to(&address);
                        get(client, "/");
                }
                for (size_t i = 0; i < ELEMENTSOF(hogs); i++) {
                        (void)recv(hogs[i], text, sizeof(text), MSG_DONTWAIT);
                        get(hogs[i], "/");
                        get(hogs[i], "/");
                }
                ck_assert_int_ge(sd_event_run(event, 0), 0);
                n = client < 0 ? -1 : recv(client, text, sizeof(text), MSG_DONTWAIT);
        }
        ck_assert_int_gt(n, 0);
        for (size_t i = 0; i < ELEMENTSOF(hogs); i++)
                (void)close(hogs[i]);
        (void)close(client);
        end_at_path();
}

/* Over a port: the oldest that says nothing gives way. */
TEST(who_says_nothing_makes_room)
{
        struct address address = start_at_path();
        int clients[8];

        for (size_t i = 0; i < ELEMENTSOF(clients); i++)
                clients[i] = connect_to(&address);
        get_ok(clients[7], "/stream");
        get_ok(clients[6], "/");
        expect_end(clients[0]);
        expect_end(clients[1]);
        ck_assert_uint_le(http_count(http).connections, 3);
        ck_assert_uint_eq(http_count(http).streams, 1);
        for (size_t i = 2; i < ELEMENTSOF(clients); i++)
                (void)close(clients[i]);
        end_at_path();
}

/* The same, of those who ask for much and take nothing of it, and if all connections are streams. */
TEST_LOOP(who_takes_nothing_and_streams_make_room, 2)
{
        struct address address = start_at_path();
        int clients[4];

        for (size_t i = 0; i < 3; i++) {
                clients[i] = connect_to(&address);
                if (_i == 0)
                        get(clients[i], "/large");
                else
                        get_ok(clients[i], "/stream");
        }
        clients[3] = connect_to(&address);
        get_ok(clients[3], "/");
        expect_end(clients[0]);
        ck_assert_uint_eq(http_count(http).streams, _i == 0 ? 0 : 2);
        for (size_t i = 1; i < ELEMENTSOF(clients); i++)
                (void)close(clients[i]);
        end_at_path();
}

/* All connections wait for the handler. */
TEST(a_waiting_request_makes_room)
{
        struct address address = start_at_path();
        int clients[4];

        waits_always = true;
        for (size_t i = 0; i < 3; i++) {
                clients[i] = connect_to(&address);
                get(clients[i], "/wait");
                run_until(answers > i);
        }
        clients[3] = connect_to(&address);
        get_ok(clients[3], "/");
        expect_end(clients[2]);
        waits_always = false;
        http_resume(http);
        expect(clients[0], "HTTP/1.1 200 OK\r\n");
        (void)close(clients[0]);
        (void)close(clients[1]);
        (void)close(clients[3]);
        end_at_path();
}

/* Reads what there is, and runs the loop, until so many messages have come. */
static void read_messages(int fd, unsigned n)
{
        static char text[1 << 16];

        while (n > 0) {
                ck_assert_int_gt(hear(fd, text, sizeof(text)), 0);
                for (const char *at = text; (at = strchr(at, '!')); at++)
                        n -= n > 0;
        }
}

/* Tabs that stay open, and are opened again, for as many updates as an hour has. */
TEST(what_is_sent_for_long_leaves_nothing_behind)
{
        _cleanup_shared_ struct shared *message = shared_take(malloc(10000), 10000);
        size_t before = 0;
        int stays, comes;

        start(&http_default_limits);
        memset(message->data, 'x', message->size);
        message->data[message->size - 1] = '!';
        stays = connect_client();
        get_ok(stays, "/stream");
        for (unsigned i = 0; i < 3600; i++) {
                comes = connect_client();
                get_ok(comes, "/stream");
                stream_publish(&stream, message);
                read_messages(stays, 1);
                read_messages(comes, 1);
                (void)close(comes);
                if (i == 600)
                        before = mallinfo2().uordblks;
        }
        /* Those that have gone are known as they are written to. */
        while (http_count(http).connections > 1) {
                stream_publish(&stream, message);
                read_messages(stays, 1);
        }
        ck_assert_uint_le(mallinfo2().uordblks, before + (64 << 10));
        ck_assert_uint_eq(message->holders, 2);
        (void)close(stays);
}

TEST_MAIN("http", .each = {NULL, teardown})
