/* SPDX-License-Identifier: MIT */
/* Dispatches each call of the control interface to its handler, and serves waiting clients. */
#include "daemon/api/control.h"
#include "daemon/runtime/subsystem.h"
#include "io/clock.h"
#include <malloc.h>

int control_new(const struct control_host *host, struct control **ret)
{
        struct control *control = calloc(1, sizeof(*control));

        if (!control)
                return -ENOMEM;
        control->host = *host;
        control->problems = (struct problem_source){
                .persist = host->persist, .config = host->config, .instance = host->selector};
        control->watches = (struct watch_list){.world = host->world, .event = host->persist->runtime->event};
        control->queue_calls = (struct queue_calls){.links = &host->persist->runtime->links,
                                                    .metrics = handler_metrics,
                                                    .diagnose = handler_diagnose,
                                                    .userdata = control};
        int r = events_new(&control->events);
        if (r < 0) {
                free(control);
                return r;
        }
        control->watches.events = control->events;
        *ret = control;
        return 0;
}

struct control *control_free(struct control *control)
{
        if (!control)
                return NULL;
        assert(!control->watches.first);
        events_free(control->events);
        queue_calls_forget(&control->queue_calls, USEC_INFINITY);
        (void)handler_forget_status(control, USEC_INFINITY);
        free(control);
        return NULL;
}

/* Same order as control_methods: both are generated from CONTROL_METHODS. */
#define ROW(method, name, ...) handle_##name,
static void (*const handlers[])(struct control *control, struct call *call, json_t *parameters,
                                usec_t now) = {CONTROL_METHODS(ROW)};
#undef ROW

/* Returns a parameter that the method does not have, or NULL. A misspelled parameter must not be ignored. */
static const char *unknown_parameter(const struct control_method *method, json_t *parameters)
{
        const char *key;
        json_t *value;

        json_object_foreach(parameters, key, value) if (!control_has_parameter(method, key)) return key;
        return NULL;
}

void control_handle(struct call *call, const struct control_method *method, json_t *parameters,
                    void *userdata)
{
        struct control *control = userdata;
        const char *unknown = unknown_parameter(method, parameters);

        if (unknown)
                handler_refuse_parameter(call, unknown);
        else
                handlers[method - control_methods](control, call, parameters, clock_now(CLOCK_MONOTONIC));
}

void control_tick(struct control *control, usec_t now)
{
        events_tick(control->events);
        /* Without recent requests, free the cached status and return memory: with many workers both are
         * large. */
        if (handler_forget_status(control, usec_sub(now, USEC_PER_SEC)))
                (void)malloc_trim(0);
        watch_tick(&control->watches, now);
        queue_calls_forget(&control->queue_calls, now);
}
