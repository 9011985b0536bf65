/* SPDX-License-Identifier: MIT */
/* Fuzzes the process at a socket that sqmgr-web queries. Each line of the input is an answer. Its first
 * letter is the kind (fleets, events, queues); '!' means raw bytes; any other line is JSON within a
 * reply. The result is shown as JSON, page, metrics and history. */
#include "fuzz.h"
#include "web/history.h"
#include "web/metrics.h"
#include "web/page.h"
#include "web/watch.h"
#include "wire/json.h"
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#define NOW (1800000000 * USEC_PER_SEC)

static char path[] = "/tmp/sqmgr-fuzz.XXXXXX/sock";
static int listener = -1;

static void remove_folder(void)
{
        char *slash = strrchr(path, '/');

        (void)unlink(path);
        *slash = '\0';
        (void)rmdir(path);
        *slash = '/';
}

static void open_listener(void)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        char *slash = strrchr(path, '/');

        (void)signal(SIGPIPE, SIG_IGN);
        *slash = '\0';
        fuzz_check(mkdtemp(path));
        *slash = '/';
        memcpy(address.sun_path, path, sizeof(path));
        listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        fuzz_check(bind(listener, (const struct sockaddr *)&address, sizeof(address)) == 0);
        fuzz_check(listen(listener, 5) == 0);
        fuzz_check(atexit(remove_folder) == 0);
}

static void on_answers(void *userdata, json_t *news)
{
        size_t i;
        const json_t *event;

        json_array_foreach(news, i, event)
        {
                fuzz_check(json_is_object(event) && json_is_string(json_object_get(event, "socket")));
        }
        ++*(unsigned *)userdata;
}

static void on_metrics(void *userdata _unused_)
{
}

/* Checks that the page has no markup but its own, which does not contain these words. */
static void look_at_page(enum page_part part, const json_t *document, const json_t *events)
{
        _cleanup_free_ char *html = NULL;
        size_t size;

        fuzz_check(page_render(part, document, events, NOW, &html, &size) == 0);
        fuzz_check(strlen(html) == size && !strcasestr(html, "<evil"));
}

static void look(const struct watch *watch)
{
        const struct instances *instances = watch_instances(watch);
        _cleanup_json_ json_t *document = instances_render(instances, NULL, 7 * USEC_PER_SEC);
        _cleanup_free_ char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;
        _cleanup_free_ char *lacks = instances_lacks(instances), *merged = NULL;
        _cleanup_free_ struct history_sample *samples = NULL;
        const struct http_counts self = {0};
        size_t size;

        fuzz_check(text && lacks && !strchr(text, '\n'));
        fuzz_check(json_array_size(instances->events) <= INSTANCES_EVENTS);
        fuzz_check(history_feed_samples(instances, &samples) >= 0);
        fuzz_check(metrics_merge(instances, NOW, &self, METRICS_OPEN, &merged, &size) == 0);
        fuzz_check(strlen(merged) == size && strstr(merged, "# EOF\n") == merged + size - 6);
        look_at_page(PAGE_WHOLE, document, instances->events);
        look_at_page(PAGE_LIVE, document, instances->events);
}

/* Builds the answer for a line: a reply of its kind around the line, or the line itself. */
static int frame(const struct field *line, char *bytes, size_t size)
{
        static const char *const lists[] = {['s'] = "fleets", ['e'] = "events", ['q'] = "redis"};
        size_t kind = (unsigned char)line->text[0];

        if (kind < ELEMENTSOF(lists) && lists[kind])
                return snprintf(bytes, size, "{\"parameters\":{\"%s\":[%s]}}", lists[kind], line->text + 1);
        return snprintf(bytes, size, "{\"parameters\":%s}", line->text);
}

static void answer(int peer, struct input *input)
{
        struct field line = input_line(input);
        char bytes[65536];

        while (recv(peer, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
                ;
        if (line.text[0] == '!') {
                (void)send(peer, line.text + 1, line.len, MSG_DONTWAIT | MSG_NOSIGNAL);
        } else {
                int n = frame(&line, bytes, sizeof(bytes));

                if (n > 0 && (size_t)n < sizeof(bytes))
                        (void)send(peer, bytes, (size_t)n + 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        field_free(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct watch_ops ops = {.reported = on_answers, .metrics_reported = on_metrics};
        const char *const sockets[] = {path};
        const struct watch_places places = {.sockets = sockets, .n = 1};
        struct input input = {.at = data, .left = size};
        sd_event *event = NULL;
        struct watch *watch;
        unsigned reported = 0;
        int peer = -1;

        if (listener < 0)
                open_listener();
        fuzz_check(sd_event_new(&event) >= 0);
        fuzz_check(watch_new(&watch, event, &places, &ops, &reported) == 0);
        while (peer < 0) {
                fuzz_check(sd_event_run(event, USEC_PER_SEC) >= 0);
                peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        }
        for (unsigned i = 0; i < 16 && input.left > 0; i++) {
                answer(peer, &input);
                for (unsigned turn = 0; turn < 100 && sd_event_run(event, 0) > 0; turn++)
                        ;
                (void)watch_ask_metrics(watch);
        }
        look(watch);
        close_fd(peer);
        watch_free(watch);
        sd_event_unref(event);
        return 0;
}
