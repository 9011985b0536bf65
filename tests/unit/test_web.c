/* SPDX-License-Identifier: MIT */
/* How often sqmgr-web renders: once for all clients, and for none that is sent no text. What a false sqmgr
 * sends is refused. The test plays the clients and the sqmgr, each over a real socket. */
#include "loop.h"
#include "web/metrics.h"
#include "web/page.h"
#include "web/web.h"
#include "wire/control.h"
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#define CLIENTS 20

static char folder[64], path[80];
static int listener, peer; /* of the sqmgr; peer is -1 while sqmgr-web has not connected */
static struct web *web;
static int clients[CLIENTS];
static unsigned pages, statuses, merges; /* rendered */
static unsigned asked_metrics;
static const char *events; /* what is answered to GetEvents */

int __real_page_render(enum page_part part, const json_t *status, const json_t *list, usec_t now, char **ret,
                       size_t *ret_size);
int __wrap_page_render(enum page_part part, const json_t *status, const json_t *list, usec_t now, char **ret,
                       size_t *ret_size);
int __wrap_page_render(enum page_part part, const json_t *status, const json_t *list, usec_t now, char **ret,
                       size_t *ret_size)
{
        pages++;
        return __real_page_render(part, status, list, now, ret, ret_size);
}

json_t *__real_instances_render(const struct instances *instances, usec_t now);
json_t *__wrap_instances_render(const struct instances *instances, usec_t now);
json_t *__wrap_instances_render(const struct instances *instances, usec_t now)
{
        statuses++;
        return __real_instances_render(instances, now);
}

int __real_metrics_merge(const struct instances *instances, usec_t now, const struct http_counts *self,
                         enum metrics_format format, char **ret, size_t *ret_size);
int __wrap_metrics_merge(const struct instances *instances, usec_t now, const struct http_counts *self,
                         enum metrics_format format, char **ret, size_t *ret_size);
int __wrap_metrics_merge(const struct instances *instances, usec_t now, const struct http_counts *self,
                         enum metrics_format format, char **ret, size_t *ret_size)
{
        merges++;
        return __real_metrics_merge(instances, now, self, format, ret, ret_size);
}

static const char *reply_to(const char *call)
{
        if (strstr(call, CONTROL_INTERFACE ".GetStatus"))
                return "{\"parameters\":{\"fleets\":[{\"name\":\"default\"}]}}";
        if (strstr(call, CONTROL_INTERFACE ".GetEvents"))
                return events;
        if (strstr(call, CONTROL_INTERFACE ".GetQueues"))
                return "{\"parameters\":{\"redis\":[]}}";
        asked_metrics++;
        return "{\"parameters\":{\"text\":\"a 1\\n\"}}";
}

/* Answers what sqmgr-web has asked, if anything. */
static void answer_as_sqmgr(void)
{
        char call[1024];

        if (peer < 0)
                peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        ssize_t n = peer < 0 ? -1 : recv(peer, call, sizeof(call), 0);
        if (n > 0) {
                const char *reply = reply_to(call);

                (void)send(peer, reply, strlen(reply) + 1, MSG_NOSIGNAL);
        } else if (n == 0) {
                peer = close_fd(peer);
        }
}

/* Runs the loop, with an sqmgr that answers, until the condition holds. */
#define run_all_until(condition)                                                                             \
        do {                                                                                                 \
                while (!(condition)) {                                                                       \
                        ck_assert_int_ge(sd_event_run(event, 20 * USEC_PER_MSEC), 0);                        \
                        answer_as_sqmgr();                                                                   \
                }                                                                                            \
        } while (0)

static bool is_asked(void)
{
        return peer >= 0;
}

static void setup(void)
{
        static const char *sockets[] = {path};
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        (void)signal(SIGPIPE, SIG_IGN);
        snprintf(folder, sizeof(folder), "/tmp/sqmgr-test.XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/sock", folder);
        memcpy(address.sun_path, path, sizeof(path));
        listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        ck_assert_int_eq(bind(listener, (const struct sockaddr *)&address, sizeof(address)), 0);
        ck_assert_int_eq(listen(listener, 5), 0);
        peer = -1;
        events = "{\"parameters\":{\"events\":[]}}";
        ck_assert_int_ge(sd_event_new(&event), 0);
        ck_assert_int_eq(web_new(&web, event, sockets, 1, NULL), 0);
        run_all_until(is_asked());
        for (size_t i = 0; i < CLIENTS; i++)
                clients[i] = -1;
        pages = statuses = merges = asked_metrics = 0;
}

static void teardown(void)
{
        for (size_t i = 0; i < CLIENTS; i++)
                close_fd(clients[i]);
        web_free(web);
        sd_event_unref(event);
        close_fd(peer);
        close_fd(listener);
        unit_remove_tree(folder);
}

static int connect_client(void)
{
        const struct sockaddr_un none = {.sun_family = AF_UNIX};
        int fds[2];

        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        ck_assert_int_eq(http_add(web_http(web), fds[0], (const struct sockaddr *)&none, sizeof(none)), 0);
        return fds[1];
}

static void ask(const char *line)
{
        char text[128];
        int size = snprintf(text, sizeof(text), "%s HTTP/1.1\r\nHost: localhost\r\n\r\n", line);

        for (size_t i = 0; i < CLIENTS; i++) {
                close_fd(clients[i]);
                clients[i] = connect_client();
                ck_assert_int_eq(send(clients[i], text, (size_t)size, MSG_NOSIGNAL), size);
        }
}

/* Returns true if there is something to read for all clients. */
static bool all_hear(void)
{
        for (size_t i = 0; i < CLIENTS; i++) {
                struct pollfd pollfd = {.fd = clients[i], .events = POLLIN};

                if (poll(&pollfd, 1, 0) < 1)
                        return false;
        }
        return true;
}

/* Reads what each client was sent, which must begin so. */
static void expect_all(const char *begin)
{
        static char text[1 << 18];

        for (size_t i = 0; i < CLIENTS; i++) {
                ssize_t n = recv(clients[i], text, sizeof(text) - 1, 0);

                ck_assert_int_gt(n, 0);
                text[n] = '\0';
                ck_assert_msg(strncmp(text, begin, strlen(begin)) == 0, "%s", text);
        }
}

/* All clients ask at one moment: the clock of the loop, and what is known of sqmgr, stand still. */
static void ask_at_once(const char *line, const char *begin)
{
        ask(line);
        while (!all_hear())
                http_run(web_http(web));
        expect_all(begin);
}

TEST(a_document_is_rendered_once_for_all)
{
        ask_at_once("GET /", "HTTP/1.1 200 ");
        ck_assert_uint_eq(pages, 1);
        ask_at_once("GET /live", "HTTP/1.1 200 ");
        ck_assert_uint_eq(pages, 2);
        ck_assert_uint_eq(statuses, 2);
        ask_at_once("GET /api/status", "HTTP/1.1 200 ");
        ck_assert_uint_eq(statuses, 3);
        /* It is the same text, framed. */
        ask_at_once("GET /api/events", "HTTP/1.1 200 ");
        ask_at_once("GET /api/events", "HTTP/1.1 200 ");
        ck_assert_uint_eq(statuses, 3);
        ck_assert_uint_eq(pages, 2);
}

TEST(metrics_are_asked_for_and_rendered_once_for_all)
{
        ask("GET /metrics");
        run_all_until(all_hear());
        expect_all("HTTP/1.1 200 ");
        ck_assert_uint_eq(merges, 1);
        ck_assert_uint_eq(asked_metrics, 1);
        ask_at_once("GET /metrics", "HTTP/1.1 200 ");
        ck_assert_uint_eq(merges, 1);
        ck_assert_uint_eq(asked_metrics, 1);
}

TEST(a_head_or_a_post_renders_nothing)
{
        static const char *const posts[] = {"POST /", "POST /live", "PUT /metrics", "DELETE /api/events"};

        for (size_t i = 0; i < ELEMENTSOF(posts); i++)
                ask_at_once(posts[i], "HTTP/1.1 405 ");
        ask_at_once("HEAD /live", "HTTP/1.1 200 ");
        ask_at_once("HEAD /api/events", "HTTP/1.1 200 ");
        ck_assert_uint_eq(pages + statuses + merges, 0);
        ck_assert_uint_eq(http_count(web_http(web)).streams, 0);
        /* Of a text the size is said, that of the last one. */
        ask_at_once("HEAD /", "HTTP/1.1 200 ");
        ask_at_once("HEAD /metrics", "HTTP/1.1 200 ");
        ck_assert_uint_eq(pages, 1);
        ck_assert_uint_eq(merges, 1);
        ask_at_once("GET /live", "HTTP/1.1 200 ");
        run_all_until(pages >= 4);
        unsigned before = pages;
        ask_at_once("HEAD /", "HTTP/1.1 200 ");
        ck_assert_uint_eq(pages, before);
        ck_assert_uint_eq(asked_metrics, 0);
}

/* The first message of a stream is the one that was published last. */
TEST(a_message_is_rendered_once_for_all)
{
        ask_at_once("GET /live", "HTTP/1.1 200 ");
        ck_assert_uint_eq(pages, 1);
        run_all_until(pages == 2);
        while (!all_hear())
                http_run(web_http(web));
        ck_assert_uint_eq(pages, 2);
        ask_at_once("GET /live", "HTTP/1.1 200 ");
        ck_assert_uint_eq(pages, 2);
}

static bool shows(const char *sentence)
{
        static char text[65536];
        const char request[] = "GET /api/status HTTP/1.1\r\nHost: localhost\r\n\r\n";
        size_t length = 0;
        ssize_t n;
        int client = connect_client();

        ck_assert_int_eq(send(client, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
        for (unsigned i = 0; i < 10; i++)
                http_run(web_http(web));
        while ((n = recv(client, text + length, sizeof(text) - 1 - length, 0)) > 0)
                length += (size_t)n;
        text[length] = '\0';
        (void)close(client);
        return strstr(text, sentence);
}

TEST(a_refused_reply_is_shown_as_the_reason)
{
        char *text;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        run_all_until(shows("\"reachable\":true"));
        fputs("{\"parameters\":{\"events\":[{\"text\":\"", out);
        for (unsigned i = 0; i < 20000; i++)
                fputc('x', out);
        fputs("\"}]}}", out);
        ck_assert_int_eq(fclose(out), 0);
        events = text;
        run_all_until(shows("the reply to GetEvents is refused: it has a text of more than 16384 bytes"));
        ck_assert(shows("\"reachable\":false"));
        /* The fleets are shown as they were. */
        ck_assert(shows("\"name\":\"default\""));
        events = "{\"parameters\":{\"events\":[]}}";
        run_all_until(shows("\"reachable\":true"));
        free(text);
}

TEST_MAIN("web", .each = {setup, teardown})
