/* SPDX-License-Identifier: MIT */
/* How often sqmgr-web renders: once for all clients, and for none that is sent no text. What a false sqmgr
 * sends is refused. The test plays the clients and the sqmgr, each over a real socket. */
#include "loop.h"
#include "web/history.h"
#include "web/metrics.h"
#include "web/page.h"
#include "web/web.h"
#include "wire/control.h"
#include "wire/reply.h"
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define CLIENTS 20

static char folder[64], path[80];
static int listener, peer; /* of the sqmgr; peer is -1 while sqmgr-web has not connected */
static struct web *web;
static int clients[CLIENTS];
static unsigned pages, statuses, merges, histories; /* rendered */
static unsigned asked_metrics, n_answers[_INSTANCE_QUERY_MAX];
static const char *events; /* what is answered to GetEvents */
static const char *unsent; /* the rest of an answer */
static size_t unsent_bytes;
static char *large[_INSTANCE_QUERY_MAX]; /* what is answered instead, or NULL */

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

json_t *__real_instances_render(const struct instances *instances, const char *host, usec_t now);
json_t *__wrap_instances_render(const struct instances *instances, const char *host, usec_t now);
json_t *__wrap_instances_render(const struct instances *instances, const char *host, usec_t now)
{
        statuses++;
        return __real_instances_render(instances, host, now);
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

json_t *__real_history_json(const struct history *history, enum history_range range, usec_t now);
json_t *__wrap_history_json(const struct history *history, enum history_range range, usec_t now);
json_t *__wrap_history_json(const struct history *history, enum history_range range, usec_t now)
{
        histories++;
        return __real_history_json(history, range, now);
}

static const char *reply_to(const char *call)
{
        static const char *const methods[] = {
                [INSTANCE_QUERY_STATUS] = CONTROL_INTERFACE ".GetStatus",
                [INSTANCE_QUERY_EVENTS] = CONTROL_INTERFACE ".GetEvents",
                [INSTANCE_QUERY_QUEUES] = CONTROL_INTERFACE ".GetQueues",
                [INSTANCE_QUERY_METRICS] = CONTROL_INTERFACE ".GetMetrics",
        };

        for (size_t i = 0; i < _INSTANCE_QUERY_MAX; i++) {
                if (!strstr(call, methods[i]))
                        continue;
                n_answers[i]++;
                if (large[i])
                        return large[i];
        }
        if (strstr(call, CONTROL_INTERFACE ".GetStatus"))
                return "{\"parameters\":{\"fleets\":[{\"name\":\"default\"}]}}";
        if (strstr(call, CONTROL_INTERFACE ".GetEvents"))
                return events;
        if (strstr(call, CONTROL_INTERFACE ".GetQueues"))
                return "{\"parameters\":{\"redis\":[]}}";
        asked_metrics++;
        return "{\"parameters\":{\"text\":\"# TYPE a gauge\\na 1\\n\"}}";
}

/* Answers what sqmgr-web has asked, if anything. */
static void answer_as_sqmgr(void)
{
        char call[1024];

        if (peer < 0)
                peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (peer >= 0 && unsent_bytes > 0) {
                ssize_t sent = send(peer, unsent, unsent_bytes, MSG_NOSIGNAL);

                if (sent >= 0) {
                        unsent += sent;
                        unsent_bytes -= (size_t)sent;
                        return;
                }
                if (errno == EAGAIN)
                        return;
                unsent_bytes = 0;
        }
        ssize_t n = peer < 0 ? -1 : recv(peer, call, sizeof(call), 0);
        if (n > 0) {
                unsent = reply_to(call);
                unsent_bytes = strlen(unsent) + 1;
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

static void ignore_report(void *userdata _unused_, json_t *news _unused_)
{
}

static void ignore_metrics(void *userdata _unused_)
{
}

static void setup(void)
{
        static const char *sockets[] = {path};
        static const struct watch_places places = {.sockets = sockets, .n = 1};

        (void)signal(SIGPIPE, SIG_IGN);
        unit_make_folder(folder);
        snprintf(path, sizeof(path), "%s/sock", folder);
        listener = unit_listen(path, SOCK_NONBLOCK);
        peer = -1;
        unsent_bytes = 0;
        events = "{\"parameters\":{\"events\":[]}}";
        ck_assert_int_ge(sd_event_new(&event), 0);
        ck_assert_int_eq(web_new(&web, event, &places, NULL), 0);
        run_all_until(is_asked());
        for (size_t i = 0; i < CLIENTS; i++)
                clients[i] = -1;
        pages = statuses = merges = histories = asked_metrics = 0;
        memset(n_answers, 0, sizeof(n_answers));
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

TEST(instances_are_found_as_they_start)
{
        static const struct watch_ops ops = {.reported = ignore_report, .metrics_reported = ignore_metrics};
        const struct watch_places places = {.runtime_dir = folder, .enabled_dir = "/nonexistent"};
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        struct watch *watch;
        char text[128];

        ck_assert_int_eq(watch_new(&watch, event, &places, &ops, NULL), 0);
        const struct instances *instances = watch_instances(watch);
        ck_assert_uint_eq(instances->n, 0);
        snprintf(text, sizeof(text), "%s/shop", folder);
        ck_assert_int_eq(mkdir(text, 0700), 0);
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/shop/control.sock", folder);
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
        watch_set_viewers(watch, 1);
        run_all_until(instances->n == 1);
        ck_assert_str_eq(instances->list[0].socket, address.sun_path);
        ck_assert_str_eq(instances->list[0].name, "shop");
        /* It stays. */
        ck_assert_int_eq(unlink(address.sun_path), 0);
        run_all_until(!instances->list[0].reachable);
        ck_assert_uint_eq(instances->n, 1);
        watch_free(watch);
        ck_assert_int_eq(rmdir(text), 0);
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
        ask_at_once("GET /api/history?range=month", "HTTP/1.1 200 ");
        ask_at_once("GET /api/history?range=month&more", "HTTP/1.1 200 ");
        ck_assert_uint_eq(histories, 1);
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
        run_all_until(shows("reply to GetEvents refused: it has a text of more than 16384 bytes"));
        ck_assert(shows("\"reachable\":false"));
        /* The fleets are shown as they were. */
        ck_assert(shows("\"name\":\"default\""));
        events = "{\"parameters\":{\"events\":[]}}";
        run_all_until(shows("\"reachable\":true"));
        free(text);
}

/* Each fleet and worker is as large as the limits allow: numbers take the most memory. */
static void put_status(FILE *out)
{
        fputs("{\"parameters\":{\"fleets\":[", out);
        for (unsigned i = 0; i < REPLY_FLEETS_MAX; i++) {
                fprintf(out, "%s{\"name\":\"%u\",\"workers\":[", i > 0 ? "," : "", i);
                for (unsigned k = 0; k < 10; k++) {
                        fprintf(out, "%s{\"id\":\"%u/%u\"", k > 0 ? "," : "", i, k);
                        for (unsigned j = 0; j < 25; j++)
                                fprintf(out, ",\"long_name_of_it_%02u\":9", j);
                        fputs(",\"a\":{},\"b\":{}}", out);
                }
                fputs("]}", out);
        }
        fputs("]}}", out);
}

static void put_events(FILE *out)
{
        static unsigned at;

        fputs("{\"parameters\":{\"events\":[", out);
        for (unsigned i = 0; i < REPLY_EVENTS_MAX; i++)
                fprintf(out, "%s{\"at\":%u,\"event\":\"order\",\"level\":\"error\",\"text\":\"%0*u\"}",
                        i > 0 ? "," : "", ++at, 4000, i);
        fputs("]}}", out);
}

static void put_list(FILE *out, const char *name, unsigned n, unsigned members)
{
        fprintf(out, "{\"parameters\":{\"%s\":[", name);
        for (unsigned i = 0; i < n; i++) {
                fprintf(out, "%s{\"name\":\"%u\"", i > 0 ? "," : "", i);
                for (unsigned j = 2; j < members; j++)
                        fprintf(out, ",\"long_name_of_%u\":9", j);
                fputs("}", out);
        }
        fputs("]}}", out);
}

static void put_metrics(FILE *out)
{
        fputs("{\"parameters\":{\"text\":\"", out);
        for (unsigned i = 0; i < REPLY_METRICS_MAX / 2; i++) {
                unsigned family = i / 500;

                if (i % 500 == 0)
                        fprintf(out, "# TYPE a_family_%u gauge\\n", family);
                else
                        fprintf(out, "a_family_%u{b0=\\\"value of a\\\",b1=\\\"value of a\\\"} 12345678.5\\n",
                                family);
        }
        fputs("\"}}", out);
}

static void put_large(void)
{
        for (unsigned i = 0; i < _INSTANCE_QUERY_MAX; i++) {
                size_t size;
                FILE *out = open_memstream(&large[i], &size);

                if (i == INSTANCE_QUERY_STATUS)
                        put_status(out);
                else if (i == INSTANCE_QUERY_EVENTS)
                        put_events(out);
                else if (i == INSTANCE_QUERY_QUEUES)
                        put_list(out, "redis", 9000, 5);
                else
                        put_metrics(out);
                ck_assert_int_eq(fclose(out), 0);
                char reason[REPLY_REASON_MAX] = "";
                ck_assert_msg(reply_limits_scan(i, large[i], size, reason), "%u: %s", i, reason);
        }
}

static long peak(void)
{
        struct rusage usage;

        ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
        return usage.ru_maxrss / 1024;
}

TEST(an_instance_that_sends_what_is_accepted_takes_less_than_250_mb)
{
        static const char *const requests[] = {"GET /metrics", "GET /", "GET /api/status", "GET /api/events"};

        if (getenv("UNDER_VALGRIND")) {
                fprintf(stderr, "skipped: too many bytes for valgrind\n");
                return;
        }
        put_large();
        long before = peak();
        /* The clients do not read what they are sent, while newer replies arrive. */
        ask("GET /live");
        run_all_until(n_answers[INSTANCE_QUERY_STATUS] > 2 && n_answers[INSTANCE_QUERY_QUEUES] > 0);
        for (size_t i = 0; i < ELEMENTSOF(requests); i++) {
                ask(requests[i]);
                run_all_until(all_hear());
                expect_all("HTTP/1.1 200 ");
        }
        printf("%ld MiB, then %ld\n", before, peak());
        ck_assert(shows("\"reachable\":true"));
#ifndef __SANITIZE_ADDRESS__ /* which keeps what is freed for a while */
        /* 178 MiB if sqmgr-web is fast; up to 205 if several timers are due at once. */
        ck_assert_int_lt(peak() - before, 230);
#endif
        for (unsigned i = 0; i < _INSTANCE_QUERY_MAX; i++)
                free(TAKE_PTR(large[i]));
}

TEST_MAIN("web", .each = {setup, teardown}, .timeout_seconds = 300)
