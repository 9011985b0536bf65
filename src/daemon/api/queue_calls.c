/* SPDX-License-Identifier: MIT */
/* Answers what waits in each Redis. */
#include "daemon/api/queue_calls.h"
#include "wire/varlink.h"
#include <stdio.h>

static json_t *render_queues(const struct link *link)
{
        _cleanup_json_ json_t *list = json_array();

        for (size_t i = 0; link->queues && i < link->queues->n; i++) {
                const struct queue *queue = &link->queues->list[i];
                double latency = (double)(queue->latency / USEC_PER_MSEC) / 1000;
                json_t *entry = json_pack("{s:o, s:I, s:o, s:b}", "name", varlink_name(queue->name), "size",
                                          (json_int_t)queue->size, "latency_seconds",
                                          queue->latency_known ? json_real(latency) : json_null(), "paused",
                                          (int)queue->paused);

                if (json_array_append_new(list, entry) < 0)
                        return NULL;
        }
        return TAKE_PTR(list);
}

static json_t *render(const struct links *links)
{
        _cleanup_json_ json_t *list = json_array();

        for (size_t i = 0; i < links->n; i++) {
                const struct link *link = links->list[i];
                const struct queues none = {0}, *queues = link->queues ? link->queues : &none;

                /* Its framework does not tell of them. */
                if (!link->framework->queues)
                        continue;
                json_t *entry = json_pack("{s:o, s:o, s:I, s:I, s:I, s:o, s:I}", "url",
                                          varlink_text(redis_url_text(link->redis)), "error",
                                          varlink_text(queue_reading_error(link)), "retry",
                                          (json_int_t)queues->retry, "schedule", (json_int_t)queues->schedule,
                                          "dead", (json_int_t)queues->dead, "queues", render_queues(link),
                                          "queues_left_out", (json_int_t)queues->left_out);

                if (json_array_append_new(list, entry) < 0)
                        return NULL;
        }
        return json_pack("{s:O}", "redis", list);
}

static void reply(const struct links *links, struct call *call)
{
        const struct link *unread = NULL;
        char reason[512];

        for (size_t i = 0; i < links->n; i++) {
                const struct link *link = links->list[i];

                if (link->queues) {
                        unread = NULL;
                        break;
                }
                if (link->framework->queues && !unread)
                        unread = link;
        }
        if (!unread) {
                server_reply(call, render(links), false);
                return;
        }
        snprintf(reason, sizeof(reason), "the queues of Redis %s cannot be read: %s",
                 redis_url_text(unread->redis), queue_reading_error(unread));
        server_reply_error(call, CONTROL_REFUSED,
                           json_pack("{s:o, s:[]}", "reason", varlink_text(reason), "details"));
}

void queue_calls_answer(struct queue_calls *calls, struct control *control)
{
        while (calls->n > 0) {
                struct call *call = calls->list[--calls->n].call;

                if (calls->list[calls->n].metrics)
                        control_reply_metrics(control, call);
                else
                        reply(calls->reading->links, call);
        }
}

static void on_cancelled(struct call *call, void *userdata)
{
        struct queue_calls *calls = userdata;
        size_t i = 0;

        while (calls->list[i].call != call)
                i++;
        calls->list[i] = calls->list[--calls->n];
}

void queue_calls_add(struct queue_calls *calls, struct call *call, bool metrics)
{
        if (calls->n == QUEUE_CALLS_MAX) {
                server_reply_error(
                        call, CONTROL_REFUSED,
                        json_pack("{s:s, s:[]}", "reason", "too many wait for this already", "details"));
                return;
        }
        calls->list[calls->n].metrics = metrics;
        calls->list[calls->n++].call = call;
        server_keep(call, on_cancelled, calls);
        queue_reading_begin(calls->reading);
}
