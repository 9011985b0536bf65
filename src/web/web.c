/* SPDX-License-Identifier: MIT */
/* Asks the instances, and serves what they tell: what the loop of sqmgr-web is made of. */
#include "web/web.h"
#include "web/assets.h"
#include "web/history.h"
#include "web/instances.h"
#include "web/link.h"
#include "web/metrics.h"
#include "web/page.h"
#include "web/say.h"
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>

#define ASK_WATCHED_USEC   (1 * USEC_PER_SEC)
#define ASK_UNWATCHED_USEC (5 * USEC_PER_SEC)
#define ASK_QUEUES_USEC    (5 * USEC_PER_SEC)
#define WATCHED_USEC       (10 * USEC_PER_SEC)
#define METRICS_USEC       (3 * USEC_PER_SEC)
#define METRICS_KEEP_USEC  (1 * USEC_PER_SEC)
#define RENDER_KEEP_USEC   (100 * USEC_PER_MSEC)
#define COMMENT_USEC       (15 * USEC_PER_SEC)
#define ACCURACY_USEC      (50 * USEC_PER_MSEC)

/* Rendered once for all who ask within a moment. */
struct rendered {
        struct shared *text;
        usec_t at;
};

struct source {
        struct web *web;
        size_t i; /* of the instances */
        struct link *link;
        char *metrics; /* as they came last, or NULL */
};

struct web {
        sd_event *event;
        struct instances instances;
        struct source *sources; /* one for each instance */
        struct history *history;
        struct http *http;
        struct stream api, live;
        sd_event_source *ask, *metrics_deadline, *comment;
        struct rendered status, page;
        usec_t watched_at; /* when somebody asked last */
        usec_t queues_at;  /* when queues were asked for last */
        usec_t sampled_at; /* for the history */
        usec_t published_at;
        usec_t metrics_at;    /* when the metrics were told last */
        bool metrics_awaited; /* requests are put off until they are told */
        bool unpublished;     /* something has been told since */
};

static usec_t now_of(const struct web *web, clockid_t clock)
{
        uint64_t now = 0;

        (void)sd_event_now(web->event, clock, &now);
        return now;
}

static bool is_watched(const struct web *web)
{
        return web->api.n > 0 || web->live.n > 0 ||
               (web->watched_at > 0 &&
                usec_sub(now_of(web, CLOCK_MONOTONIC), web->watched_at) < WATCHED_USEC);
}

/* The document of /api/status; NULL where memory is short. */
static struct shared *render_status(struct web *web)
{
        json_t *document = instances_render(&web->instances, now_of(web, CLOCK_MONOTONIC));
        _cleanup_free_ char *text =
                document ? json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;

        json_decref(document);
        return text ? shared_new(text, strlen(text)) : NULL;
}

static struct shared *render_page(struct web *web, enum page_part part)
{
        json_t *document = instances_render(&web->instances, now_of(web, CLOCK_MONOTONIC));
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        int r = document ? page_render(part, document, web->instances.events, now_of(web, CLOCK_REALTIME),
                                       &text, &size)
                         : -ENOMEM;

        json_decref(document);
        return r < 0 ? NULL : shared_new(text, size);
}

static struct shared *message_of(const char *event, struct shared *text)
{
        struct shared *message = text ? stream_message(event, text->data, text->size) : NULL;

        shared_drop(text);
        return message;
}

static void publish_to(struct stream *stream, struct shared *message)
{
        if (message)
                stream_publish(stream, message);
        shared_drop(message);
}

static void publish(struct web *web)
{
        web->unpublished = false;
        web->published_at = now_of(web, CLOCK_MONOTONIC);
        if (web->api.n > 0)
                publish_to(&web->api, message_of("status", render_status(web)));
        if (web->live.n > 0)
                publish_to(&web->live, message_of("page", render_page(web, PAGE_LIVE)));
}

/* Those that answer are waited for: what they tell is one message. */
static void publish_when_all_told(struct web *web)
{
        web->unpublished = true;
        for (size_t i = 0; i < web->instances.n; i++)
                if (link_awaits(web->sources[i].link, LINK_STATUS) ||
                    link_awaits(web->sources[i].link, LINK_EVENTS))
                        return;
        publish(web);
}

static bool metrics_awaited_of_any(const struct web *web)
{
        for (size_t i = 0; i < web->instances.n; i++)
                if (link_awaits(web->sources[i].link, LINK_METRICS))
                        return true;
        return false;
}

static void end_metrics(struct web *web)
{
        if (!web->metrics_awaited)
                return;
        web->metrics_awaited = false;
        web->metrics_at = now_of(web, CLOCK_MONOTONIC);
        (void)sd_event_source_set_enabled(web->metrics_deadline, SD_EVENT_OFF);
        http_resume(web->http);
}

static json_t *on_parameters(void *userdata _unused_, enum link_question question _unused_)
{
        return NULL;
}

static void on_answered(void *userdata, enum link_question question, json_t *answer)
{
        struct source *source = userdata;
        struct web *web = source->web;
        struct instance *instance = &web->instances.list[source->i];

        switch (question) {
        case LINK_STATUS:
                if (!instance->reachable)
                        say_info("%s: sqmgr answers", instance->socket);
                instance_take_status(instance, answer, now_of(web, CLOCK_MONOTONIC));
                break;
        case LINK_EVENTS:
                json_decref(instances_take_events(&web->instances, instance, answer));
                publish_when_all_told(web);
                break;
        case LINK_QUEUES:
                instance_take_queues(instance, answer);
                break;
        case LINK_METRICS:
                free(source->metrics);
                source->metrics = NULL;
                if (json_is_string(json_object_get(answer, "text")))
                        source->metrics = strdup(json_string_value(json_object_get(answer, "text")));
                if (!metrics_awaited_of_any(web))
                        end_metrics(web);
                break;
        default:
                assert(false);
        }
}

static void on_lost(void *userdata, const char *error)
{
        struct source *source = userdata;
        struct web *web = source->web;
        struct instance *instance = &web->instances.list[source->i];
        bool news = instance->reachable || !instance->error || strcmp(instance->error, error) != 0;

        free(source->metrics);
        source->metrics = NULL;
        if (news) {
                say_warning("%s: %s", instance->socket, error);
                instance_lose(instance, error);
                publish_when_all_told(web);
        }
        if (!metrics_awaited_of_any(web))
                end_metrics(web);
}

static const struct link_ops link_ops = {
        .parameters = on_parameters, .answered = on_answered, .lost = on_lost};

static void ask(struct web *web)
{
        usec_t now = now_of(web, CLOCK_MONOTONIC);
        bool queues = web->queues_at == 0 || usec_sub(now, web->queues_at) + ACCURACY_USEC >= ASK_QUEUES_USEC;

        if (web->unpublished)
                publish(web);
        if (queues)
                web->queues_at = now;
        for (size_t i = 0; i < web->instances.n; i++) {
                link_ask(web->sources[i].link, LINK_STATUS);
                link_ask(web->sources[i].link, LINK_EVENTS);
                if (queues)
                        link_ask(web->sources[i].link, LINK_QUEUES);
        }
}

static int on_ask(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct web *web = userdata;

        ask(web);
        (void)sd_event_source_set_time_relative(source,
                                                is_watched(web) ? ASK_WATCHED_USEC : ASK_UNWATCHED_USEC);
        (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        return 0;
}

/* Somebody looks: whoever has not been asked for some time is asked now. */
static void watch(struct web *web)
{
        if (!is_watched(web))
                (void)sd_event_source_set_time_relative(web->ask, 0);
        web->watched_at = now_of(web, CLOCK_MONOTONIC);
}

static int on_metrics_deadline(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        end_metrics(userdata);
        return 0;
}

static int on_comment(sd_event_source *source, uint64_t usec, void *userdata)
{
        static const char text[] = ":\n\n";
        struct web *web = userdata;
        _cleanup_shared_ struct shared *comment = shared_new(text, strlen(text));

        if (comment && usec_sub(usec, web->published_at) >= COMMENT_USEC) {
                stream_publish_idle(&web->api, comment);
                stream_publish_idle(&web->live, comment);
        }
        (void)sd_event_source_set_time_relative(source, COMMENT_USEC);
        (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        return 0;
}

static void answer_text(struct http_request *request, const char *type, struct shared *text)
{
        if (text)
                http_answer(request,
                            &(struct http_answer){.status = MHD_HTTP_OK, .type = type, .text = text});
}

/* Where memory is short the request gets no answer, and its connection ends. */
static struct shared *keep(struct web *web, struct rendered *rendered,
                           struct shared *(*render)(struct web *web))
{
        usec_t now = now_of(web, CLOCK_MONOTONIC);

        if (!rendered->text || usec_sub(now, rendered->at) > RENDER_KEEP_USEC) {
                shared_drop(rendered->text);
                rendered->text = render(web);
                rendered->at = now;
        }
        return rendered->text;
}

static struct shared *render_whole(struct web *web)
{
        return render_page(web, PAGE_WHOLE);
}

static void get_page(struct web *web, struct http_request *request)
{
        struct shared *text = keep(web, &web->page, render_whole);

        watch(web);
        if (text)
                http_answer(request, &(struct http_answer){.status = MHD_HTTP_OK,
                                                           .type = "text/html; charset=utf-8",
                                                           .csp = page_csp(),
                                                           .text = text});
}

static void get_status(struct web *web, struct http_request *request)
{
        watch(web);
        answer_text(request, "application/json", keep(web, &web->status, render_status));
}

static void get_events(struct web *web, struct http_request *request)
{
        _cleanup_shared_ struct shared *first = message_of("status", render_status(web));

        watch(web);
        http_stream(request, &web->api, first);
}

static void get_live(struct web *web, struct http_request *request)
{
        _cleanup_shared_ struct shared *first = message_of("page", render_page(web, PAGE_LIVE));

        watch(web);
        http_stream(request, &web->live, first);
}

static void get_history(struct web *web, struct http_request *request)
{
        static const char *const names[] = {
                [HISTORY_HOUR] = "hour", [HISTORY_DAY] = "day", [HISTORY_MONTH] = "month"};
        const char *range = http_argument(request, "range") ?: names[HISTORY_HOUR];

        static_assert(ELEMENTSOF(names) == _HISTORY_RANGE_MAX, "each range has its name");
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                if (strcmp(range, names[i]) != 0)
                        continue;
                json_t *document = history_json(web->history, i, now_of(web, CLOCK_REALTIME));
                _cleanup_free_ char *text =
                        document ? json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
                _cleanup_shared_ struct shared *shared = text ? shared_new(text, strlen(text)) : NULL;

                json_decref(document);
                answer_text(request, "application/json", shared);
                return;
        }
        http_answer_sentence(request, MHD_HTTP_BAD_REQUEST, "range is hour, day or month");
}

static void get_healthz(struct web *web _unused_, struct http_request *request)
{
        http_answer_sentence(request, MHD_HTTP_OK, "ok");
}

static void get_readyz(struct web *web, struct http_request *request)
{
        _cleanup_free_ char *why = NULL;

        watch(web);
        if (instances_ready(&web->instances, &why))
                http_answer_sentence(request, MHD_HTTP_OK, "ok");
        else
                http_answer_sentence(request, MHD_HTTP_SERVICE_UNAVAILABLE, why ?: "memory is short");
}

static void answer_metrics(struct web *web, struct http_request *request)
{
        _cleanup_free_ struct metrics_source *list = calloc(web->instances.n, sizeof(*list));
        _cleanup_free_ char *text = NULL;
        usec_t now = now_of(web, CLOCK_MONOTONIC);
        enum metrics_format format = metrics_negotiate(http_header(request, "Accept"));
        size_t size;

        for (size_t i = 0; list && i < web->instances.n; i++) {
                const struct instance *instance = &web->instances.list[i];

                list[i] = (struct metrics_source){
                        .socket = instance->socket,
                        .text = web->sources[i].metrics,
                        .up = instance->reachable,
                        .age_seconds =
                                instance->status ? (double)usec_sub(now, instance->told_at) / 1e6 : -1};
        }
        if (!list || metrics_merge(list, web->instances.n, format, &text, &size) < 0)
                return;
        _cleanup_shared_ struct shared *shared = shared_new(text, size);
        answer_text(request, metrics_type(format), shared);
}

static void get_metrics(struct web *web, struct http_request *request)
{
        usec_t now = now_of(web, CLOCK_MONOTONIC);

        if (!web->metrics_awaited &&
            (web->metrics_at == 0 || usec_sub(now, web->metrics_at) > METRICS_KEEP_USEC)) {
                for (size_t i = 0; i < web->instances.n; i++)
                        link_ask(web->sources[i].link, LINK_METRICS);
                web->metrics_awaited = metrics_awaited_of_any(web);
                (void)sd_event_source_set_time_relative(web->metrics_deadline, METRICS_USEC);
                (void)sd_event_source_set_enabled(web->metrics_deadline, SD_EVENT_ONESHOT);
        }
        if (web->metrics_awaited)
                http_wait(request);
        else
                answer_metrics(web, request);
}

static void on_request(void *userdata, struct http_request *request, const char *path)
{
        static const struct {
                const char *path;
                void (*get)(struct web *web, struct http_request *request);
        } routes[] = {
                {"/", get_page},
                {"/api/events", get_events},
                {"/api/history", get_history},
                {"/api/status", get_status},
                {"/healthz", get_healthz},
                {"/live", get_live},
                {"/metrics", get_metrics},
                {"/readyz", get_readyz},
        };
        const struct asset *asset = assets_find(path);

        for (size_t i = 0; i < ELEMENTSOF(routes); i++)
                if (strcmp(path, routes[i].path) == 0) {
                        routes[i].get(userdata, request);
                        return;
                }
        if (asset)
                http_answer(request, &(struct http_answer){.status = MHD_HTTP_OK,
                                                           .type = asset->type,
                                                           .cache = "public, max-age=31536000, immutable",
                                                           .data = asset->data,
                                                           .size = asset->size});
        else
                http_answer_sentence(request, MHD_HTTP_NOT_FOUND, "there is nothing here");
}

static const struct http_ops http_ops = {.answer = on_request};

static int add_timers(struct web *web)
{
        int r = sd_event_add_time_relative(web->event, &web->ask, CLOCK_MONOTONIC, 0, ACCURACY_USEC, on_ask,
                                           web);

        if (r >= 0)
                r = sd_event_add_time_relative(web->event, &web->comment, CLOCK_MONOTONIC, COMMENT_USEC,
                                               ACCURACY_USEC, on_comment, web);
        if (r >= 0)
                r = sd_event_add_time_relative(web->event, &web->metrics_deadline, CLOCK_MONOTONIC,
                                               METRICS_USEC, ACCURACY_USEC, on_metrics_deadline, web);
        if (r >= 0)
                r = sd_event_source_set_enabled(web->metrics_deadline, SD_EVENT_OFF);
        return r < 0 ? r : 0;
}

static int make(struct web *web, const char *const *sockets, size_t n)
{
        int r = instances_init(&web->instances, sockets, n);

        if (r == 0)
                r = history_new(&web->history);
        if (r == 0)
                r = http_new(&web->http, web->event, &http_default_limits, &http_ops, web);
        web->sources = calloc(n, sizeof(*web->sources));
        if (r == 0 && !web->sources)
                r = -ENOMEM;
        for (size_t i = 0; r == 0 && i < n; i++) {
                web->sources[i] = (struct source){.web = web, .i = i};
                r = link_new(&web->sources[i].link, web->event, sockets[i], &link_ops, &web->sources[i]);
        }
        return r == 0 ? add_timers(web) : r;
}

int web_new(struct web **ret, sd_event *event, const char *const *sockets, size_t n_sockets)
{
        struct web *web = calloc(1, sizeof(*web));

        if (!web)
                return -ENOMEM;
        *web = (struct web){.event = event, .api.wake = http_wake, .live.wake = http_wake};
        int r = make(web, sockets, n_sockets);
        if (r < 0) {
                web_free(web);
                return r;
        }
        *ret = web;
        return 0;
}

struct web *web_free(struct web *web)
{
        if (!web)
                return NULL;
        sd_event_source_disable_unref(web->ask);
        sd_event_source_disable_unref(web->comment);
        sd_event_source_disable_unref(web->metrics_deadline);
        for (size_t i = 0; web->sources && i < web->instances.n; i++) {
                link_free(web->sources[i].link);
                free(web->sources[i].metrics);
        }
        free(web->sources);
        http_free(web->http);
        shared_drop(web->status.text);
        shared_drop(web->page.text);
        stream_done(&web->api);
        stream_done(&web->live);
        history_free(web->history);
        instances_done(&web->instances);
        free(web);
        return NULL;
}

struct http *web_http(struct web *web)
{
        return web->http;
}
