/* SPDX-License-Identifier: MIT */
/* The server's paths, streams and history. */
#include "web/web.h"
#include "base/memstream.h"
#include "base/printable.h"
#include "web/assets.h"
#include "web/history_file.h"
#include "web/log.h"
#include "web/loop.h"
#include "web/metrics.h"
#include "web/page.h"
#include "wire/reply.h"
#include <limits.h>
#include <microhttpd.h>

/* Ages in a document grow, so it is rendered anew even if nothing has changed. */
#define RENDER_KEEP_USEC (1 * USEC_PER_SEC)
#define COMMENT_USEC     (15 * USEC_PER_SEC)
#define JSON_FORM        (JSON_COMPACT | JSON_REAL_PRECISION(15))
/* The step of the shortest ring. */
#define SAMPLE_USEC   (5 * USEC_PER_SEC)
#define ACCURACY_USEC (500 * USEC_PER_MSEC)

/* Each document is rendered once for all requests, until there are newer data. */
enum document {
        DOCUMENT_PAGE,
        DOCUMENT_LIVE, /* every message of STREAM_LIVE */
        DOCUMENT_STATUS,
        DOCUMENT_EVENTS, /* a message of STREAM_EVENTS without events: the first one, and later ones if there
                            is no news; made from DOCUMENT_STATUS */
        DOCUMENT_READY,
        DOCUMENT_METRICS,                                          /* followed by the other formats */
        DOCUMENT_HISTORY = DOCUMENT_METRICS + _METRICS_FORMAT_MAX, /* followed by the other ranges */
        _DOCUMENT_MAX = DOCUMENT_HISTORY + _HISTORY_RANGE_MAX,
};

struct rendered {
        struct shared *text;
        usec_t at;
        uint64_t serial; /* of the data */
};

enum stream_kind {
        STREAM_EVENTS, /* each event, and the status as JSON */
        STREAM_LIVE,   /* the parts of the page that change */
        _STREAM_MAX,
};

static const char ready[] = "ok\n";

struct web {
        sd_event *event;
        struct watch *watch;
        struct http *http;
        struct history *history;
        struct history_file *file; /* NULL: none */
        struct {
                bool known;
                usec_t at;
        } marked[INSTANCES_MAX]; /* per instance: events up to this time already have a mark */
        struct stream streams[_STREAM_MAX];
        sd_event_source *comment;
        struct rendered documents[_DOCUMENT_MAX];
        uint64_t serial; /* raised whenever instances have reported */
        usec_t sampled_at, published_at;
};

static json_t *make_status(const struct web *web)
{
        char host[HOST_NAME_MAX + 1] = "";

        (void)gethostname(host, sizeof(host) - 1);
        printable_replace(host, strlen(host), false);
        return instances_render(watch_instances(web->watch), host[0] != '\0' ? host : NULL,
                                loop_now(web->event, CLOCK_MONOTONIC));
}

static struct shared *render_page(const struct web *web, enum page_part part)
{
        _cleanup_json_ json_t *status = make_status(web);
        char *text;
        size_t size;

        if (!status || page_render(part, status, watch_instances(web->watch)->events,
                                   loop_now(web->event, CLOCK_REALTIME), &text, &size) < 0)
                return NULL;
        return shared_take(text, size);
}

static struct shared *render_json(json_t *json)
{
        _cleanup_json_ json_t *document = json;
        char *text = json_dumps(document, JSON_FORM);

        return shared_take(text, text ? strlen(text) : 0);
}

static struct shared *render_ready(const struct web *web)
{
        _cleanup_free_ char *lacks = instances_lacks(watch_instances(web->watch));
        char *text;

        if (!lacks)
                return NULL;
        int size = asprintf(&text, "%s%s", lacks[0] == '\0' ? ready : lacks, lacks[0] == '\0' ? "" : "\n");
        return size < 0 ? NULL : shared_take(text, (size_t)size);
}

static struct shared *render_metrics(const struct web *web, enum metrics_format format)
{
        const struct http_counts self = http_count(web->http);
        char *text;
        size_t size;

        if (metrics_merge(watch_instances(web->watch), loop_now(web->event, CLOCK_MONOTONIC), &self, format,
                          &text, &size) < 0)
                return NULL;
        return shared_take(text, size);
}

/* Renders a message of STREAM_EVENTS: the new events, then the status. A viewer that is too slow for a
 * message misses its events, but not the status. status may be NULL. */
static struct shared *render_message(const struct shared *status, const json_t *news)
{
        char *text;
        size_t size;
        const json_t *each;
        FILE *out = status ? open_memstream(&text, &size) : NULL;

        if (!out)
                return NULL;
        json_foreach(each, news) {
                _cleanup_free_ char *event = json_dumps(each, JSON_FORM);

                if (event)
                        stream_put(out, "event", event);
        }
        stream_put(out, "status", status->data);
        return memstream_close(out, &text) < 0 ? NULL : shared_take(text, size);
}

static struct shared *render_live(const struct web *web)
{
        _cleanup_shared_ struct shared *page = render_page(web, PAGE_LIVE);
        char *text;
        size_t size;
        FILE *out = page ? open_memstream(&text, &size) : NULL;

        if (!out)
                return NULL;
        stream_put(out, "page", page->data);
        return memstream_close(out, &text) < 0 ? NULL : shared_take(text, size);
}

/* Returns NULL if memory is short. */
static struct shared *render(const struct web *web, unsigned document)
{
        switch (document) {
        case DOCUMENT_PAGE:
                return render_page(web, PAGE_WHOLE);
        case DOCUMENT_LIVE:
                return render_live(web);
        case DOCUMENT_STATUS:
                return render_json(make_status(web));
        case DOCUMENT_EVENTS:
                return render_message(web->documents[DOCUMENT_STATUS].text, NULL);
        case DOCUMENT_READY:
                return render_ready(web);
        default:
                if (document < DOCUMENT_HISTORY)
                        return render_metrics(web, document - DOCUMENT_METRICS);
                return render_json(history_json(web->history, document - DOCUMENT_HISTORY,
                                                loop_now(web->event, CLOCK_REALTIME)));
        }
}

static bool is_current(const struct web *web, unsigned document)
{
        const struct rendered *rendered = &web->documents[document];
        usec_t age = usec_sub(loop_now(web->event, CLOCK_MONOTONIC), rendered->at);

        if (!rendered->text)
                return false;
        /* The history has new values with each sample: a month of many fleets is megabytes and takes 250 ms.
         */
        if (document >= DOCUMENT_HISTORY)
                return age <= SAMPLE_USEC;
        return rendered->serial == web->serial && age <= RENDER_KEEP_USEC;
}

/* Returns the document, borrowed. Returns NULL if memory is short. */
static struct shared *get_rendered(struct web *web, unsigned document)
{
        /* The event document is made from the status document, which precedes it. */
        unsigned first = document == DOCUMENT_EVENTS ? DOCUMENT_STATUS : document;

        for (unsigned each = first; each <= document; each++) {
                struct rendered *rendered = &web->documents[each];

                if (is_current(web, each))
                        continue;
                shared_drop(rendered->text);
                *rendered = (struct rendered){.text = render(web, each),
                                              .at = loop_now(web->event, CLOCK_MONOTONIC),
                                              .serial = web->serial};
        }
        return web->documents[document].text;
}

/* Returns the message for the viewers of a stream. Returns NULL if memory is short. */
static struct shared *get_message(struct web *web, enum stream_kind kind, const json_t *news)
{
        if (kind == STREAM_EVENTS && json_array_size(news) > 0)
                return render_message(get_rendered(web, DOCUMENT_STATUS), news);
        struct shared *message = get_rendered(web, kind == STREAM_LIVE ? DOCUMENT_LIVE : DOCUMENT_EVENTS);
        return message ? shared_hold(message) : NULL;
}

static void publish(struct web *web, json_t *news)
{
        web->published_at = loop_now(web->event, CLOCK_MONOTONIC);
        for (enum stream_kind kind = 0; kind < _STREAM_MAX; kind++) {
                struct stream *stream = &web->streams[kind];
                _cleanup_shared_ struct shared *message =
                        LIST_EMPTY(&stream->viewers) ? NULL : get_message(web, kind, news);

                if (message)
                        stream_publish(stream, message);
        }
        watch_set_viewers(web->watch, http_count(web->http).streams);
}

static void mark(struct web *web, const json_t *event)
{
        const struct instances *instances = watch_instances(web->watch);
        const char *socket = reply_string(event, "socket");
        const char *name = history_feed_mark_name(reply_string(event, "event"));
        double seconds = json_number_value(json_object_get(event, "at"));

        if (!name || !(seconds > 0) || seconds > (double)UINT32_MAX)
                return;
        usec_t at = (usec_t)(seconds * (double)USEC_PER_SEC);
        for (size_t i = 0; i < instances->n; i++) {
                if (strcmp(instances->list[i].socket, socket) != 0)
                        continue;
                if (!web->marked[i].known)
                        web->marked[i].at = history_newest_mark(web->history, socket,
                                                                loop_now(web->event, CLOCK_REALTIME));
                web->marked[i].known = true;
                if (at <= web->marked[i].at)
                        return;
        }
        history_mark(web->history, at, socket, reply_string(event, "fleet"), name,
                     reply_string(event, "text"));
}

static void save(struct web *web)
{
        char why[HISTORY_FILE_WHY_MAX];

        if (!web->file)
                return;
        enum history_file_change change = history_file_save(web->file, web->history, why);
        if (change != HISTORY_FILE_AS_BEFORE)
                log_message(change == HISTORY_FILE_FAILS ? LOG_ERR : LOG_INFO, "%s", why);
}

static void keep_history(struct web *web, const json_t *news)
{
        _cleanup_free_ struct history_sample *samples = NULL;
        usec_t now = loop_now(web->event, CLOCK_MONOTONIC);
        const json_t *event;

        json_foreach(event, news)
                mark(web, event);
        if (web->sampled_at == 0 || usec_sub(now, web->sampled_at) + ACCURACY_USEC >= SAMPLE_USEC) {
                ssize_t n = history_feed_samples(watch_instances(web->watch), &samples);

                if (n > 0)
                        history_add(web->history, loop_now(web->event, CLOCK_REALTIME), samples, (size_t)n);
                web->sampled_at = now;
                save(web);
        }
}

static void on_answers(void *userdata, json_t *news)
{
        struct web *web = userdata;

        web->serial++;
        keep_history(web, news);
        publish(web, news);
}

static void on_metrics(void *userdata)
{
        struct web *web = userdata;

        for (unsigned format = 0; format < _METRICS_FORMAT_MAX; format++)
                web->documents[DOCUMENT_METRICS + format].serial = web->serial - 1;
        http_resume(web->http);
}

static int on_comment(sd_event_source *source, uint64_t usec, void *userdata)
{
        static const char text[] = ":\n\n";
        struct web *web = userdata;
        _cleanup_shared_ struct shared *comment = shared_take(strdup(text), strlen(text));

        if (comment && usec_sub(usec, web->published_at) >= COMMENT_USEC)
                for (size_t i = 0; i < ELEMENTSOF(web->streams); i++)
                        stream_publish_idle(&web->streams[i], comment);
        loop_arm(source, COMMENT_USEC);
        return 0;
}

/* If memory is short, the request gets no response and its connection ends. */
static void answer(struct web *web, struct http_request *request, unsigned document,
                   const struct http_answer *with)
{
        struct http_answer answer = *with;

        /* HEAD needs only the size, so an outdated text suffices. */
        answer.text = http_is_head(request) ? web->documents[document].text : NULL;
        if (!answer.text)
                answer.text = get_rendered(web, document);
        if (answer.text)
                http_answer(request, &answer);
}

static void get_document(struct web *web, struct http_request *request, unsigned document)
{
        bool is_page = document == DOCUMENT_PAGE;

        answer(web, request, document,
               &(struct http_answer){.status = MHD_HTTP_OK,
                                     .type = is_page ? "text/html; charset=utf-8" : "application/json",
                                     .csp = is_page ? page_csp() : NULL});
        if (!http_is_head(request))
                watch_poll(web->watch);
}

static void get_stream(struct web *web, struct http_request *request, unsigned kind)
{
        struct viewer *viewer = http_stream(request, &web->streams[kind]);

        if (!viewer)
                return;
        _cleanup_shared_ struct shared *first = get_message(web, (enum stream_kind)kind, NULL);
        if (first)
                stream_send_first(viewer, first);
        watch_poll(web->watch);
        watch_set_viewers(web->watch, http_count(web->http).streams);
}

static void get_history(struct web *web, struct http_request *request, unsigned which _unused_)
{
        const char *name = http_argument(request, "range");
        int range = name ? history_range_find(name) : HISTORY_HOUR;

        if (range < 0)
                http_answer_sentence(request, MHD_HTTP_BAD_REQUEST, "range must be hour, day or month");
        else
                get_document(web, request, DOCUMENT_HISTORY + (unsigned)range);
}

static void get_healthz(struct web *web _unused_, struct http_request *request, unsigned which _unused_)
{
        http_answer_sentence(request, MHD_HTTP_OK, "ok");
}

static void get_readyz(struct web *web, struct http_request *request, unsigned which _unused_)
{
        struct shared *text = get_rendered(web, DOCUMENT_READY);

        watch_poll(web->watch);
        if (text)
                http_answer(request, &(struct http_answer){.status = strcmp(text->data, ready) == 0
                                                                             ? MHD_HTTP_OK
                                                                             : MHD_HTTP_SERVICE_UNAVAILABLE,
                                                           .type = "text/plain; charset=utf-8",
                                                           .text = text});
}

static void get_metrics(struct web *web, struct http_request *request, unsigned which _unused_)
{
        enum metrics_format format = metrics_negotiate(http_header(request, "Accept"));

        if (!http_is_head(request) && watch_ask_metrics(web->watch))
                http_wait(request);
        else
                answer(web, request, DOCUMENT_METRICS + (unsigned)format,
                       &(struct http_answer){.status = MHD_HTTP_OK, .type = metrics_type(format)});
}

static void on_request(void *userdata, struct http_request *request, const char *path)
{
        static const struct {
                const char *path;
                void (*get)(struct web *web, struct http_request *request, unsigned which);
                unsigned which; /* variant for get() */
        } routes[] = {
                {"/", get_document, DOCUMENT_PAGE}, {"/api/events", get_stream, STREAM_EVENTS},
                {"/api/history", get_history, 0},   {"/api/status", get_document, DOCUMENT_STATUS},
                {"/healthz", get_healthz, 0},       {"/live", get_stream, STREAM_LIVE},
                {"/metrics", get_metrics, 0},       {"/readyz", get_readyz, 0},
        };
        struct asset *asset = assets_find(path);

        for (size_t i = 0; i < ELEMENTSOF(routes); i++)
                if (strcmp(path, routes[i].path) == 0) {
                        routes[i].get(userdata, request, routes[i].which);
                        return;
                }
        if (asset)
                http_answer(request, &(struct http_answer){.status = MHD_HTTP_OK,
                                                           .type = asset->type,
                                                           .cache = "public, max-age=31536000, immutable",
                                                           .text = &asset->text});
        else
                http_answer_sentence(request, MHD_HTTP_NOT_FOUND, "not found");
}

/* A history file that cannot be used does not prevent the start. */
static int open_history(struct web *web, const char *path)
{
        char why[HISTORY_FILE_WHY_MAX];

        if (!path)
                return 0;
        int r = history_file_open(path, web->history, &web->file, why);
        if (r < 0)
                return r;
        if (r != HISTORY_FILE_READ)
                log_warning("%s", why);
        return 0;
}

static int make(struct web *web, const struct watch_places *places, const char *history)
{
        static const struct watch_ops watch_ops = {.reported = on_answers, .metrics_reported = on_metrics};

        web->history = history_new();
        if (!web->history)
                return -ENOMEM;
        int r = open_history(web, history);
        if (r == 0)
                r = http_new(&web->http, web->event, &http_default_limits, on_request, web);
        if (r == 0)
                r = watch_new(&web->watch, web->event, places, &watch_ops, web);
        if (r == 0)
                r = sd_event_add_time_relative(web->event, &web->comment, CLOCK_MONOTONIC, COMMENT_USEC,
                                               ACCURACY_USEC, on_comment, web);
        return r < 0 ? r : 0;
}

int web_new(struct web **ret, sd_event *event, const struct watch_places *places, const char *history)
{
        struct web *web = calloc(1, sizeof(*web));

        if (!web)
                return -ENOMEM;
        *web = (struct web){.event = event};
        for (size_t i = 0; i < ELEMENTSOF(web->streams); i++)
                web->streams[i].wake = http_wake;
        int r = make(web, places, history);
        *ret = r < 0 ? web_free(web) : web;
        return r;
}

struct web *web_free(struct web *web)
{
        if (!web)
                return NULL;
        sd_event_source_disable_unref(web->comment);
        http_free(web->http);
        watch_free(web->watch);
        for (size_t i = 0; i < ELEMENTSOF(web->documents); i++)
                shared_drop(web->documents[i].text);
        for (size_t i = 0; i < ELEMENTSOF(web->streams); i++)
                stream_done(&web->streams[i]);
        history_file_close(web->file);
        free(web->history);
        free(web);
        return NULL;
}

struct http *web_http(struct web *web)
{
        return web->http;
}
