/* SPDX-License-Identifier: MIT */
/* What is known of each sqmgr, and how old that is. No I/O, no clock. */
#include "web/instances.h"
#include <stdio.h>
#include <string.h>

int instances_init(struct instances *instances, const char *const *sockets, size_t n)
{
        *instances = (struct instances){
                .list = calloc(n, sizeof(*instances->list)), .n = n, .events = json_array()};
        if (!instances->list || !instances->events) {
                instances_done(instances);
                return -ENOMEM;
        }
        for (size_t i = 0; i < n; i++)
                instances->list[i].socket = sockets[i];
        return 0;
}

void instances_done(struct instances *instances)
{
        for (size_t i = 0; instances->list && i < instances->n; i++) {
                free(instances->list[i].error);
                json_decref(instances->list[i].status);
                json_decref(instances->list[i].queues);
        }
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

void instance_take_status(struct instance *instance, json_t *answer, usec_t now)
{
        if (!json_is_array(json_object_get(answer, "fleets")))
                return;
        replace(&instance->status, answer);
        instance->told_at = now;
        instance->reachable = true;
        free(instance->error);
        instance->error = NULL;
}

void instance_take_queues(struct instance *instance, json_t *answer)
{
        json_t *redis = json_object_get(answer, "redis");

        if (json_is_array(redis))
                replace(&instance->queues, redis);
}

void instance_lose(struct instance *instance, const char *error)
{
        free(instance->error);
        instance->error = strdup(error);
        instance->reachable = false;
}

/* Puts event where its time is among those known. */
static int insert_event(json_t *events, json_t *event, double at)
{
        size_t i = 0;

        while (i < json_array_size(events) &&
               json_number_value(json_object_get(json_array_get(events, i), "at")) > at)
                i++;
        return json_array_insert(events, i, event);
}

json_t *instances_take_events(struct instances *instances, struct instance *instance, json_t *answer)
{
        json_t *list = json_object_get(answer, "events"), *event, *news = json_array();
        double newest = instance->event_at;
        size_t i;

        if (!news)
                return NULL;
        json_array_foreach(list, i, event)
        {
                double at = json_number_value(json_object_get(event, "at"));

                /* Of one moment are those that were told before, too. */
                if (!json_is_object(event) || at <= instance->event_at)
                        continue;
                if (json_object_set_new(event, "socket", json_string(instance->socket)) < 0 ||
                    insert_event(instances->events, event, at) < 0 || json_array_append(news, event) < 0)
                        break;
                newest = MAX(newest, at);
                if (json_array_size(instances->events) > INSTANCES_EVENTS)
                        (void)json_array_remove(instances->events, INSTANCES_EVENTS);
        }
        instance->event_at = newest;
        return news;
}

static json_t *render(const struct instance *instance, usec_t now)
{
        /* Of the milliseconds, as the ages that sqmgr tells. */
        double age = (double)(usec_sub(now, instance->told_at) / USEC_PER_MSEC) / 1000;

        return json_pack("{s:s, s:b, s:o, s:s?, s:O?, s:O?}", "socket", instance->socket, "reachable",
                         (int)instance->reachable, "age_seconds",
                         instance->status ? json_real(age) : json_null(), "error", instance->error, "status",
                         instance->status, "queues", instance->queues);
}

json_t *instances_render(const struct instances *instances, usec_t now)
{
        json_t *list = json_array();

        for (size_t i = 0; i < instances->n; i++)
                if (json_array_append_new(list, render(&instances->list[i], now)) < 0) {
                        json_decref(list);
                        return NULL;
                }
        return json_pack("{s:o}", "instances", list);
}

/* Why the fleet is not ready, or NULL. */
static char *fleet_wants(const json_t *fleet)
{
        const char *name = json_string_value(json_object_get(fleet, "name"));
        const char *state = json_string_value(json_object_get(fleet, "state"));
        json_int_t active = json_integer_value(json_object_get(fleet, "active"));
        json_int_t target = json_integer_value(json_object_get(fleet, "target"));
        char *why;

        if (!name || !state || strcmp(state, "running") != 0 || active >= target)
                return NULL;
        if (asprintf(&why, "fleet '%s' has %lld of %lld workers active", name, (long long)active,
                     (long long)target) < 0)
                return NULL;
        return why;
}

bool instances_ready(const struct instances *instances, char **ret_why)
{
        *ret_why = NULL;
        for (size_t i = 0; i < instances->n; i++) {
                const struct instance *instance = &instances->list[i];
                json_t *fleets = json_object_get(instance->status, "fleets"), *fleet;
                size_t k;

                if (!instance->reachable) {
                        if (asprintf(ret_why, "%s: %s", instance->socket,
                                     instance->error ?: "not asked yet") < 0)
                                *ret_why = NULL;
                        return false;
                }
                json_array_foreach(fleets, k, fleet)
                {
                        *ret_why = fleet_wants(fleet);
                        if (*ret_why)
                                return false;
                }
        }
        return true;
}
