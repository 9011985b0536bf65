/* SPDX-License-Identifier: MIT */
/* Polls the instances: each second while there are viewers, otherwise every five seconds. Metrics are queried
 * on demand. The load on sqmgr does not depend on the number of viewers. */
#include "web/watch.h"
#include "base/socket_path.h"
#include "web/instance_client.h"
#include "web/log.h"
#include "web/loop.h"
#include <dirent.h>
#include <limits.h>
#include <stdio.h>

/* Reports an enabled unit, even while it has no socket. */
static void find_enabled(const char *runtime_dir, const char *unit, find_instances_found found,
                         void *userdata)
{
        static const char template[] = "sqmgr@", type[] = ".service";
        size_t length = strlen(unit), around = strlen(template) + strlen(type);
        char name[NAME_MAX + 1], socket[PATH_MAX];

        if (length <= around || strncmp(unit, template, strlen(template)) != 0 ||
            strcmp(unit + length - strlen(type), type) != 0 ||
            !socket_path_is_instance(unit + strlen(template), length - around))
                return;
        snprintf(name, sizeof(name), "%.*s", (int)(length - around), unit + strlen(template));
        if (snprintf(socket, sizeof(socket), "%s/%s/control.sock", runtime_dir, name) < (int)sizeof(socket))
                found(userdata, &(struct located){.name = name, .socket = socket});
}

void find_instances(const char *runtime_dir, const char *enabled_dir, find_instances_found found,
                    void *userdata)
{
        struct dirent **entries = NULL;
        int n = scandir(enabled_dir, &entries, NULL, alphasort);

        for (int i = 0; i < n; i++) {
                find_enabled(runtime_dir, entries[i]->d_name, found, userdata);
                free(entries[i]);
        }
        free(entries);
        locate_instances(runtime_dir, NULL, found, userdata);
}

#define ASK_WATCHED_USEC   (1 * USEC_PER_SEC)
#define ASK_UNWATCHED_USEC (5 * USEC_PER_SEC)
/* Each query reads every queue in Redis. */
#define ASK_QUEUES_USEC (5 * USEC_PER_SEC)
/* How long a client counts as a viewer after a request. */
#define WATCHED_USEC      (10 * USEC_PER_SEC)
#define METRICS_WAIT_USEC (3 * USEC_PER_SEC)
#define METRICS_KEEP_USEC (1 * USEC_PER_SEC)
/* The least time between reports, other than those at a poll: each is rendered for all viewers. */
#define REPORT_USEC   (500 * USEC_PER_MSEC)
#define ACCURACY_USEC (50 * USEC_PER_MSEC)

struct watched_instance {
        struct watch *watch;
        struct instance *instance;
        struct instance_client *instance_client;
};

struct watch {
        sd_event *event;
        const struct watch_ops *ops;
        void *userdata;
        const struct watch_places *places;
        struct instances instances;
        struct watched_instance sources[INSTANCES_MAX]; /* by instance */
        bool too_many;                                  /* reported: more than INSTANCES_MAX were found */
        sd_event_source *ask, *metrics_deadline;
        unsigned viewers;
        usec_t polled_at;     /* time of watch_poll(); 0: never */
        usec_t queues_at;     /* time of the last query of queues; 0: never */
        usec_t metrics_at;    /* time of the last metrics_reported(); 0: never */
        usec_t reported_at;   /* time of the last reported() between polls; 0: never */
        bool metrics_awaited; /* metrics_reported() will follow */
        bool unreported;      /* data arrived since reported() */
        json_t *news;         /* events since reported(), or NULL */
};

static bool is_watched(const struct watch *watch)
{
        return watch->viewers > 0 ||
               (watch->polled_at > 0 &&
                usec_sub(loop_now(watch->event, CLOCK_MONOTONIC), watch->polled_at) < WATCHED_USEC);
}

static bool awaits(const struct watch *watch, enum instance_query question)
{
        for (size_t i = 0; i < watch->instances.n; i++)
                if (instance_client_awaits(watch->sources[i].instance_client, question))
                        return true;
        return false;
}

static void report_status(struct watch *watch)
{
        json_t *news = TAKE_PTR(watch->news);

        watch->unreported = false;
        watch->ops->reported(watch->userdata, news);
        json_decref(news);
}

/* Reports all instances together once no status or event query is pending, but at most every REPORT_USEC: an
 * instance that fails again and again must not cause more reports of the others. The next poll reports what
 * was held back. */
static void report_when_all_known(struct watch *watch)
{
        usec_t now = loop_now(watch->event, CLOCK_MONOTONIC);

        watch->unreported = true;
        if (awaits(watch, INSTANCE_QUERY_STATUS) || awaits(watch, INSTANCE_QUERY_EVENTS) ||
            usec_sub(now, watch->reported_at) < REPORT_USEC)
                return;
        watch->reported_at = now;
        report_status(watch);
}

static void report_metrics(struct watch *watch)
{
        if (!watch->metrics_awaited)
                return;
        watch->metrics_awaited = false;
        watch->metrics_at = loop_now(watch->event, CLOCK_MONOTONIC);
        (void)sd_event_source_set_enabled(watch->metrics_deadline, SD_EVENT_OFF);
        watch->ops->metrics_reported(watch->userdata);
}

static void set_metrics(struct watched_instance *source, const json_t *answer)
{
        instance_take_metrics(source->instance, answer);
        if (!awaits(source->watch, INSTANCE_QUERY_METRICS))
                report_metrics(source->watch);
}

static json_t *on_parameters(void *userdata, enum instance_query question)
{
        struct watched_instance *source = userdata;
        double after =
                instance_events_after(source->instance, loop_now(source->watch->event, CLOCK_REALTIME));

        return question == INSTANCE_QUERY_EVENTS && after > 0 ? json_pack("{s:f}", "after", after) : NULL;
}

static void on_answered(void *userdata, enum instance_query question, json_t *answer)
{
        struct watched_instance *source = userdata;
        struct watch *watch = source->watch;

        switch (question) {
        case INSTANCE_QUERY_STATUS:
                if (!source->instance->reachable)
                        log_info("%s: sqmgr answers", instance_title(source->instance));
                instance_take_status(source->instance, answer, loop_now(watch->event, CLOCK_MONOTONIC));
                break;
        case INSTANCE_QUERY_EVENTS:
                if (!watch->news)
                        watch->news = json_array();
                if (watch->news)
                        instances_take_events(&watch->instances, source->instance, answer, watch->news);
                report_when_all_known(watch);
                break;
        case INSTANCE_QUERY_QUEUES:
                instance_take_queues(source->instance, answer);
                break;
        case INSTANCE_QUERY_METRICS:
                set_metrics(source, answer);
                break;
        default:
                assert(false);
        }
}

static void on_lost(void *userdata, const char *error)
{
        struct watched_instance *source = userdata;
        struct instance *instance = source->instance;
        bool known = !instance->reachable && instance->error && strcmp(instance->error, error) == 0;

        set_metrics(source, NULL);
        if (known)
                return;
        log_warning("%s: %s", instance_title(instance), error);
        instance_lose(instance, error);
        report_when_all_known(source->watch);
}

static void ask_all(struct watch *watch)
{
        usec_t now = loop_now(watch->event, CLOCK_MONOTONIC);
        bool queues =
                watch->queues_at == 0 || usec_sub(now, watch->queues_at) + ACCURACY_USEC >= ASK_QUEUES_USEC;

        if (queues)
                watch->queues_at = now;
        for (size_t i = 0; i < watch->instances.n; i++) {
                instance_client_ask(watch->sources[i].instance_client, INSTANCE_QUERY_STATUS);
                instance_client_ask(watch->sources[i].instance_client, INSTANCE_QUERY_EVENTS);
                if (queues)
                        instance_client_ask(watch->sources[i].instance_client, INSTANCE_QUERY_QUEUES);
        }
}

/* If no instance is reachable, on_ask() still reports: the data contains ages that grow. */
static bool any_reachable(const struct watch *watch)
{
        for (size_t i = 0; i < watch->instances.n; i++)
                if (watch->instances.list[i].reachable)
                        return true;
        return false;
}

static int add_instance(struct watch *watch, const char *name, const char *socket)
{
        static const struct instance_client_ops instance_client_ops = {
                .parameters = on_parameters, .answered = on_answered, .lost = on_lost};
        struct watched_instance *source = &watch->sources[watch->instances.n];
        struct instance *instance = instances_add(&watch->instances, socket, name);

        if (!instance)
                return -ENOMEM;
        *source = (struct watched_instance){.watch = watch, .instance = instance};
        int r = instance_client_new(
                &source->instance_client, watch->event,
                (struct instance_address){.path = instance->socket, .name = instance->name},
                &instance_client_default_limits, &instance_client_ops, source);
        if (r < 0)
                instances_remove_last(&watch->instances);
        return r;
}

static void remove_last(struct watch *watch)
{
        struct watched_instance *source = &watch->sources[watch->instances.n - 1];

        source->instance_client = instance_client_free(source->instance_client);
        instances_remove_last(&watch->instances);
}

static void on_found(void *userdata, const struct located *found)
{
        struct watch *watch = userdata;

        if (instances_find(&watch->instances, found->socket))
                return;
        if (watch->instances.n == INSTANCES_MAX) {
                if (!watch->too_many)
                        log_warning("'%s' is not shown: sqmgr-web shows at most %d instances", found->name,
                                    INSTANCES_MAX);
                watch->too_many = true;
                return;
        }
        /* If memory is short, the next poll tries again. */
        if (add_instance(watch, found->name, found->socket) == 0)
                log_info("instance found: %s", found->name);
}

static void add_instances(struct watch *watch)
{
        const struct watch_places *places = watch->places;

        if (places->n == 0)
                find_instances(places->runtime_dir, places->enabled_dir, on_found, watch);
}

static int on_ask(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct watch *watch = userdata;

        add_instances(watch);
        /* Report now even if an instance has not answered since the last poll: the others must not wait for
         * it. */
        if (watch->unreported || !any_reachable(watch))
                report_status(watch);
        ask_all(watch);
        loop_arm(source, is_watched(watch) ? ASK_WATCHED_USEC : ASK_UNWATCHED_USEC);
        return 0;
}

static int on_metrics_deadline(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        report_metrics(userdata);
        return 0;
}

const struct instances *watch_instances(const struct watch *watch)
{
        return &watch->instances;
}

/* Brings the next poll forward for a new viewer, who must not wait for the slow interval. */
static void poll_soon(const struct watch *watch)
{
        if (!is_watched(watch))
                (void)sd_event_source_set_time_relative(watch->ask, 0);
}

void watch_poll(struct watch *watch)
{
        poll_soon(watch);
        watch->polled_at = loop_now(watch->event, CLOCK_MONOTONIC);
}

void watch_set_viewers(struct watch *watch, unsigned n)
{
        if (n > 0)
                poll_soon(watch);
        watch->viewers = n;
}

bool watch_ask_metrics(struct watch *watch)
{
        usec_t now = loop_now(watch->event, CLOCK_MONOTONIC);

        if (watch->metrics_awaited)
                return true;
        if (watch->metrics_at > 0 && usec_sub(now, watch->metrics_at) < METRICS_KEEP_USEC)
                return false;
        for (size_t i = 0; i < watch->instances.n; i++)
                instance_client_ask(watch->sources[i].instance_client, INSTANCE_QUERY_METRICS);
        watch->metrics_awaited = awaits(watch, INSTANCE_QUERY_METRICS);
        loop_arm(watch->metrics_deadline, METRICS_WAIT_USEC);
        return watch->metrics_awaited;
}

static int make(struct watch *watch)
{
        int r = instances_init(&watch->instances);

        for (size_t i = 0; r == 0 && i < watch->places->n; i++)
                r = add_instance(watch, NULL, watch->places->sockets[i]);
        if (r < 0)
                return r;
        add_instances(watch);
        r = sd_event_add_time_relative(watch->event, &watch->ask, CLOCK_MONOTONIC, 0, ACCURACY_USEC, on_ask,
                                       watch);
        if (r >= 0)
                r = sd_event_add_time_relative(watch->event, &watch->metrics_deadline, CLOCK_MONOTONIC,
                                               METRICS_WAIT_USEC, ACCURACY_USEC, on_metrics_deadline, watch);
        if (r >= 0)
                r = sd_event_source_set_enabled(watch->metrics_deadline, SD_EVENT_OFF);
        return r < 0 ? r : 0;
}

int watch_new(struct watch **ret, sd_event *event, const struct watch_places *places,
              const struct watch_ops *ops, void *userdata)
{
        struct watch *watch = calloc(1, sizeof(*watch));

        if (!watch)
                return -ENOMEM;
        *watch = (struct watch){.event = event, .ops = ops, .userdata = userdata, .places = places};
        int r = make(watch);
        *ret = r < 0 ? watch_free(watch) : watch;
        return r;
}

struct watch *watch_free(struct watch *watch)
{
        if (!watch)
                return NULL;
        sd_event_source_disable_unref(watch->ask);
        sd_event_source_disable_unref(watch->metrics_deadline);
        while (watch->instances.n > 0)
                remove_last(watch);
        json_decref(watch->news);
        instances_done(&watch->instances);
        free(watch);
        return NULL;
}
