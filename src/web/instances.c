/* SPDX-License-Identifier: MIT */
/* The last known state of each sqmgr, and its age. No I/O, no clock. */
#include "web/instances.h"
#include "base/memstream.h"
#include "wire/reply.h"

int instances_init(struct instances *instances)
{
        *instances = (struct instances){.list = calloc(INSTANCES_MAX, sizeof(*instances->list)),
                                        .events = json_array()};
        if (!instances->list || !instances->events) {
                instances_done(instances);
                return -ENOMEM;
        }
        return 0;
}

struct instance *instances_add(struct instances *instances, const char *socket, const char *name)
{
        struct instance instance = {.socket = instances->n < INSTANCES_MAX ? strdup(socket) : NULL};

        if (instance.socket && name)
                instance.name = strdup(name);
        if (!instance.socket || (name && !instance.name)) {
                free(instance.socket);
                return NULL;
        }
        instances->list[instances->n] = instance;
        return &instances->list[instances->n++];
}

const char *instance_title(const struct instance *instance)
{
        return instance->name ?: instance->socket;
}

struct instance *instances_find(const struct instances *instances, const char *socket)
{
        for (size_t i = 0; i < instances->n; i++)
                if (strcmp(instances->list[i].socket, socket) == 0)
                        return &instances->list[i];
        return NULL;
}

void instances_remove_last(struct instances *instances)
{
        struct instance *last = &instances->list[--instances->n];

        free(last->socket);
        free(last->name);
        free(last->error);
        free(last->metrics);
        json_decref(last->status);
        json_decref(last->queues);
}

void instances_done(struct instances *instances)
{
        while (instances->n > 0)
                instances_remove_last(instances);
        free(instances->list);
        json_decref(instances->events);
        *instances = (struct instances){0};
}

static void replace(json_t **place, json_t *with)
{
        json_incref(with);
        json_decref(*place);
        *place = with;
}

void instance_lose(struct instance *instance, const char *error)
{
        free(instance->error);
        instance->error = strdup(error);
        instance->reachable = false;
}

void instance_take_status(struct instance *instance, json_t *answer, usec_t now)
{
        if (!json_is_array(json_object_get(answer, "fleets"))) {
                instance_lose(instance, "sqmgr does not report its status");
                return;
        }
        replace(&instance->status, answer);
        instance->reported_at = now;
        instance->reachable = true;
        free(instance->error);
        instance->error = NULL;
}

void instance_take_queues(struct instance *instance, const json_t *answer)
{
        json_t *list = json_object_get(answer, "redis");

        if (json_is_array(list))
                replace(&instance->queues, list);
}

void instance_take_metrics(struct instance *instance, const json_t *answer)
{
        const char *text = json_string_value(json_object_get(answer, "text"));

        free(instance->metrics);
        instance->metrics = text ? strdup(text) : NULL;
}

static double at_of(const json_t *event)
{
        return json_number_value(json_object_get(event, "at"));
}

/* Inserts the event, keeping the newest first. Among events of the same time, the last reported comes first.
 * Returns 1, 0 if the event is a duplicate, or -ENOMEM. */
static int insert_event(json_t *events, json_t *event)
{
        double at = at_of(event);
        size_t n = json_array_size(events), first = 0;

        while (first < n && at_of(json_array_get(events, first)) > at)
                first++;
        for (size_t i = first; i < n && at_of(json_array_get(events, i)) >= at; i++)
                if (json_equal(json_array_get(events, i), event))
                        return 0;
        return json_array_insert(events, first, event) < 0 ? -ENOMEM : 1;
}

double instance_events_after(const struct instance *instance, usec_t now)
{
        /* After the clock was set back, new events are older than known ones. */
        return MIN(instance->event_at, (double)now / (double)USEC_PER_SEC);
}

static struct instance *instance_of_event(const struct instances *instances, size_t event)
{
        const json_t *socket = json_object_get(json_array_get(instances->events, event), "socket");

        return instances_find(instances, json_string_value(socket));
}

/* Removes the oldest event of the instance with the most events. */
static void drop_event(struct instances *instances)
{
        size_t most = 0;

        for (size_t i = 0; i < instances->n; i++)
                most = MAX(most, instances->list[i].n_events);
        for (size_t at = json_array_size(instances->events); at-- > 0;) {
                struct instance *instance = instance_of_event(instances, at);

                if (!instance || instance->n_events < most)
                        continue;
                instance->n_events--;
                (void)json_array_remove(instances->events, at);
                return;
        }
}

/* Also of the news, only the newest are kept. */
static void add_news(json_t *news, json_t *event)
{
        (void)json_array_append(news, event);
        if (json_array_size(news) > INSTANCES_EVENTS)
                (void)json_array_remove(news, 0);
}

void instances_take_events(struct instances *instances, struct instance *instance, json_t *answer,
                           json_t *news)
{
        json_t *list = json_object_get(answer, "events"), *event;
        double newest = 0;

        json_foreach(event, list) {
                if (!json_is_object(event) ||
                    json_object_set_new(event, "socket", json_string(instance->socket)) < 0)
                        continue;
                newest = MAX(newest, at_of(event));
                if (insert_event(instances->events, event) <= 0)
                        continue;
                instance->n_events++;
                add_news(news, event);
                if (json_array_size(instances->events) > INSTANCES_EVENTS)
                        drop_event(instances);
        }
        if (newest > 0)
                instance->event_at = newest;
}

static json_t *render_age(const struct instance *instance, usec_t now)
{
        /* Whole milliseconds, like the ages in sqmgr's replies. */
        double age = (double)(usec_sub(now, instance->reported_at) / USEC_PER_MSEC) / 1000;

        return instance->status ? json_real(age) : json_null();
}

static json_t *render(const struct instance *instance, usec_t now)
{
        return json_pack("{s:s, s:s, s:b, s:o, s:s?, s:O?, s:O?}", "socket", instance->socket, "name",
                         instance_title(instance), "reachable", (int)instance->reachable, "age_seconds",
                         render_age(instance, now), "error", instance->error, "status", instance->status,
                         "queues", instance->queues);
}

json_t *instances_render(const struct instances *instances, const char *host, usec_t now)
{
        _cleanup_json_ json_t *list = json_array();

        for (size_t i = 0; i < instances->n; i++)
                if (json_array_append_new(list, render(&instances->list[i], now)) < 0)
                        return NULL;
        return json_pack("{s:s*, s:o}", "host", host, "instances", TAKE_PTR(list));
}

static void put_lack(FILE *out, const char *title, const char *sentence)
{
        fprintf(out, "%s%s%s\n", title ?: "", title ? ": " : "", sentence);
}

static void put_lacks(FILE *out, const struct instance *instance, bool several)
{
        _cleanup_json_ json_t *lacks = reply_lacks(instance->status);
        json_t *sentence;

        if (!instance->reachable)
                put_lack(out, instance_title(instance), instance->error ?: "sqmgr has not answered yet");
        else if (!lacks)
                put_lack(out, instance_title(instance), "not enough memory");
        else
                json_foreach(sentence, lacks)
                        put_lack(out, several ? instance_title(instance) : NULL, json_string_value(sentence));
}

char *instances_lacks(const struct instances *instances)
{
        char *text;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (out && instances->n == 0)
                put_lack(out, NULL, "no instance of sqmgr was found");
        for (size_t i = 0; out && i < instances->n; i++)
                put_lacks(out, &instances->list[i], instances->n > 1);
        if (memstream_close(out, &text) == 0 && size > 0)
                text[size - 1] = '\0';
        return text;
}
