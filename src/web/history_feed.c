/* SPDX-License-Identifier: MIT */
/* Converts the state and events of instances to samples and marks of the history. No I/O, no clock. */
#include "web/history_feed.h"
#include "wire/reply.h"
#include <math.h>
#include <string.h>

static double number_of(const json_t *object, const char *name)
{
        const json_t *value = json_object_get(object, name);

        return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Returns NAN if a worker does not report its busy threads. */
static double busy_of(const json_t *fleet)
{
        const json_t *worker;
        double busy = 0;

        json_foreach_in(worker, fleet, "workers")
                /* A starting worker has not sent a heartbeat and runs no job. */
                if (!reply_is(worker, "state", "starting"))
                        busy += number_of(worker, "busy");
        return busy;
}

static double latency_of(const json_t *redis)
{
        const json_t *each, *queue;
        double latency = NAN;

        json_foreach(each, redis)
                json_foreach_in(queue, each, "queues")
                        latency = fmax(latency, number_of(queue, "latency_seconds"));
        return latency;
}

ssize_t history_feed_samples(const struct instances *instances, struct history_sample **ret)
{
        _cleanup_free_ struct history_sample *list = NULL;
        size_t n = 0, allocated = 0;

        for (size_t i = 0; i < instances->n; i++) {
                const struct instance *instance = &instances->list[i];
                const json_t *fleet;
                double latency = latency_of(instance->queues);

                if (!instance->reachable)
                        continue;
                json_foreach_in(fleet, instance->status, "fleets") {
                        const char *name = json_string_value(json_object_get(fleet, "name"));

                        if (!name)
                                continue;
                        if (!ARRAY_RESERVE(list, n, allocated))
                                return -ENOMEM;
                        list[n++] = (struct history_sample){
                                .socket = instance->socket,
                                .fleet = name,
                                .memory_bytes = number_of(fleet, "memory_bytes"),
                                .active = number_of(fleet, "active"),
                                .busy = busy_of(fleet),
                                .latency_seconds = latency,
                        };
                }
        }
        *ret = TAKE_PTR(list);
        return (ssize_t)n;
}

const char *history_feed_mark_name(const char *event)
{
        static const char *const names[][2] = {
                {"boot-timeout", "crash"},
                {"crashed", "crash"},
                {"deaf", "hang"},
                {"database-down", "database"},
                {"drain-cut", "kill"},
                {"hung", "hang"},
                {"job-lost", "job"},
                {"job-parked", "job"},
                {"job-rescued", "job"},
                {"killed", "kill"},
                {"memory-over", "memory"},
                {"redis-down", "redis"},
                {"redis-failover", "redis"},
                {"rollout-aborted", "abort"},
                {"rollout-done", "done"},
                {"rollout-halted", "halt"},
                {"rollout-started", "restart"},
                {"start-failed", "crash"},
                {"template-failed", "crash"},
        };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (strcmp(names[i][0], event) == 0)
                        return names[i][1];
        return NULL;
}
