/* SPDX-License-Identifier: MIT */
/* Bounds on what a client may do: time, room, streams. Over a real socket pair, through libmicrohttpd. */
#include "unit.h"
#include "web/http.h"
#include <malloc.h>
#include <poll.h>

#define BRIEF_USEC (100 * USEC_PER_MSEC)

static sd_event *event;
static struct http *http;
static struct stream stream = {.wake = http_wake};
static unsigned answers; /* given */
static struct shared *large;

static void on_answer(void *userdata _unused_, struct http_request *request, const char *path)
{
        answers++;
        if (strcmp(path, "/stream") == 0)
                http_stream(request, &stream, NULL);
        else if (strcmp(path, "/large") == 0)
                http_answer(request,
                            &(struct http_answer){.status = 200, .type = "text/plain", .text = large});
        else if (strcmp(path, "/wait") == 0 && answers == 1)
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
        http_free(http);
        stream_done(&stream);
        shared_drop(large);
        sd_event_unref(event);
}

static int connect_client(void)
{
        const struct sockaddr_un peer = {.sun_family = AF_UNIX};
        int fds[2];

        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        ck_assert_int_eq(http_add(http, fds[0], (const struct sockaddr *)&peer, sizeof(peer)), 0);
        http_run(http);
        return fds[1];
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
        static const struct http_limits limits = {
                .connections = 10, .streams = 10, .wait_usec = BRIEF_USEC, .answer_usec = USEC_PER_HOUR};

        start(&limits);
        int half = connect_client(), idle = connect_client(), kept = connect_client();
        get(kept, "/");
        expect(kept, "HTTP/1.1 200 OK\r\n");
        log_message(half, "GET / HTTP/1.1\r\nHost: loc");
        expect_end(half);
        expect_end(idle);
        expect_end(kept);
        while (http_count(http).connections > 0)
                ck_assert_int_ge(sd_event_run(event, USEC_PER_SEC), 0);
        ck_assert_uint_eq(http_count(http).refused, 3);
}

TEST(an_answer_must_be_taken_in_time)
{
        static const struct http_limits limits = {
                .connections = 10, .streams = 10, .wait_usec = USEC_PER_HOUR, .answer_usec = BRIEF_USEC};

        start(&limits);
        int slow = connect_client(), watching = connect_client();
        get(slow, "/large");
        get(watching, "/stream");
        expect(watching, "HTTP/1.1 200 OK\r\n");
        while (http_count(http).refused == 0)
                ck_assert_int_ge(sd_event_run(event, USEC_PER_SEC), 0);
        expect_end(slow);
        /* Who has all that there is of a stream is not late. */
        ck_assert_uint_eq(http_count(http).streams, 1);
        stream_publish(&stream, large);
        expect(watching, "");
        /* Who takes none of what comes then is. */
        while (http_count(http).streams > 0)
                ck_assert_int_ge(sd_event_run(event, USEC_PER_SEC), 0);
        expect_end(watching);
        ck_assert_uint_eq(large->holders, 2);
        ck_assert_ptr_eq(stream.newest, large);
}

TEST(streams_are_counted)
{
        static const struct http_limits limits = {
                .connections = 10, .streams = 2, .wait_usec = USEC_PER_HOUR, .answer_usec = USEC_PER_HOUR};
        int clients[3];

        start(&limits);
        for (unsigned i = 0; i < 3; i++) {
                clients[i] = connect_client();
                get(clients[i], "/stream");
                expect(clients[i], i < 2 ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.1 503 Service Unavailable\r\n");
        }
        /* One that has gone is noticed as it is written to. */
        (void)close(clients[0]);
        while (http_count(http).streams == 2) {
                stream_publish(&stream, large);
                ck_assert_int_ge(sd_event_run(event, USEC_PER_SEC), 0);
        }
        get(clients[2], "/stream");
        expect(clients[2], "HTTP/1.1 200 OK\r\n");
        (void)close(clients[1]);
        (void)close(clients[2]);
}

TEST(what_was_put_off_is_asked_for_anew)
{
        start(&http_default_limits);
        int client = connect_client();

        get(client, "/wait");
        while (answers == 0)
                ck_assert_int_ge(sd_event_run(event, USEC_PER_SEC), 0);
        http_resume(http);
        expect(client, "HTTP/1.1 200 OK\r\n");
        ck_assert_uint_eq(answers, 2);
        get(client, "/wait");
        expect(client, "HTTP/1.1 200 OK\r\n");
        (void)close(client);
}

TEST(all_ends_in_the_midst_of_it)
{
        start(&http_default_limits);
        int clients[] = {connect_client(), connect_client(), connect_client(), connect_client()};

        get(clients[0], "/wait");
        while (answers == 0)
                ck_assert_int_ge(sd_event_run(event, USEC_PER_SEC), 0);
        get(clients[1], "/stream");
        expect(clients[1], "HTTP/1.1 200 OK\r\n");
        get(clients[2], "/large");
        expect(clients[2], "HTTP/1.1 200 OK\r\n");
        log_message(clients[3], "GET");
        http = http_free(http);
        for (size_t i = 0; i < ELEMENTSOF(clients); i++)
                (void)close(clients[i]);
        ck_assert_uint_eq(large->holders, 1);
        ck_assert(LIST_EMPTY(&stream.viewers));
}

/* With room for three, in a folder made of that template. */
static struct address start_at_path(char *folder)
{
        static const struct http_limits three_connections = {
                .connections = 3, .streams = 1, .wait_usec = USEC_PER_HOUR, .answer_usec = USEC_PER_HOUR};
        struct address address = {.size = sizeof(address.path), .path = {.sun_family = AF_UNIX}};
        char error[256];

        ck_assert_ptr_nonnull(mkdtemp(folder));
        start(&three_connections);
        snprintf(address.path.sun_path, sizeof(address.path.sun_path), "%s/sock", folder);
        ck_assert_msg(http_listen(http, &address, error, sizeof(error)) == 0, "%s", error);
        return address;
}

static int connect_to(const struct address *address)
{
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        ck_assert_int_eq(connect(fd, &address->any, address->size), 0);
        return fd;
}

/* Over a port: the oldest that says nothing gives way. */
TEST(who_says_nothing_makes_room)
{
        char folder[] = "/tmp/sqmgr-test.XXXXXX";
        struct address address = start_at_path(folder);
        int clients[8];

        for (size_t i = 0; i < ELEMENTSOF(clients); i++)
                clients[i] = connect_to(&address);
        get(clients[7], "/stream");
        expect(clients[7], "HTTP/1.1 200 OK\r\n");
        get(clients[6], "/");
        expect(clients[6], "HTTP/1.1 200 OK\r\n");
        expect_end(clients[0]);
        expect_end(clients[1]);
        ck_assert_uint_le(http_count(http).connections, 3);
        ck_assert_uint_eq(http_count(http).streams, 1);
        for (size_t i = 2; i < ELEMENTSOF(clients); i++)
                (void)close(clients[i]);
        http = http_free(http);
        ck_assert_int_eq(access(address.path.sun_path, F_OK), -1);
        unit_remove_tree(folder);
}

/* The same, of those who ask for much and take nothing of it. */
TEST(who_takes_nothing_makes_room)
{
        char folder[] = "/tmp/sqmgr-test.XXXXXX";
        struct address address = start_at_path(folder);
        int clients[4];

        for (size_t i = 0; i < ELEMENTSOF(clients); i++) {
                clients[i] = connect_to(&address);
                get(clients[i], i < 3 ? "/large" : "/");
        }
        expect(clients[3], "HTTP/1.1 200 OK\r\n");
        expect_end(clients[0]);
        for (size_t i = 1; i < ELEMENTSOF(clients); i++)
                (void)close(clients[i]);
        http = http_free(http);
        unit_remove_tree(folder);
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
        get(stays, "/stream");
        expect(stays, "HTTP/1.1 200 OK\r\n");
        for (unsigned i = 0; i < 3600; i++) {
                comes = connect_client();
                get(comes, "/stream");
                expect(comes, "HTTP/1.1 200 OK\r\n");
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
