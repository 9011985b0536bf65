/* SPDX-License-Identifier: MIT */
/* Answers GetQueues, and the calls that need queues. */
#include "daemon/api/queue_calls.h"
#include "frameworks/framework.h"
#include "wire/varlink.h"
#include <stdio.h>

#define KEEP_USEC USEC_PER_SEC

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

        FOREACH_POINTER(link, links->list, links->n) {
                const struct queues none = {0}, *queues = link->queues ? link->queues : &none;

                /* The framework does not report queues. */
                if (!link->framework->has_queues)
                        continue;
                json_t *entry = json_pack("{s:o, s:o, s:I, s:I, s:I, s:o, s:I}", "url",
                                          varlink_text(reader_url_text(link->reader)), "error",
                                          varlink_text(queue_reading_error(link)), "retry",
                                          (json_int_t)queues->retry, "schedule", (json_int_t)queues->schedule,
                                          "dead", (json_int_t)queues->dead, "queues", render_queues(link),
                                          "queues_left_out", (json_int_t)queues->left_out);

                if (json_array_append_new(list, entry) < 0)
                        return NULL;
        }
        return json_pack("{s:O}", "redis", list);
}

static int encode_queues(const struct links *links, char **ret, size_t *ret_size)
{
        const struct link *unread = NULL;
        bool any = false;
        char reason[512];

        for (size_t i = links->n; i-- > 0;) {
                any |= !!links->list[i]->queues;
                if (links->list[i]->framework->has_queues)
                        unread = links->list[i];
        }
        if (any || !unread)
                return varlink_encode_reply(render(links), false, ret, ret_size);
        snprintf(reason, sizeof(reason), "the queues of Redis %s cannot be read: %s",
                 reader_url_text(unread->reader), queue_reading_error(unread));
        return varlink_encode_error(CONTROL_REFUSED,
                                    json_pack("{s:o, s:[]}", "reason", varlink_text(reason), "details"), ret,
                                    ret_size);
}

static void forget(struct queue_calls *calls, enum queue_question question)
{
        free(calls->answers[question].text);
        calls->answers[question].text = NULL;
}

static void encode(struct queue_calls *calls, enum queue_question question, usec_t now)
{
        char *text;
        size_t size;

        forget(calls, question);
        int r = question == QUEUE_QUESTION_QUEUES
                        ? encode_queues(calls->links, &text, &size)
                        : varlink_encode_reply(
                                  calls->metrics(calls->userdata, question == QUEUE_QUESTION_METRICS), false,
                                  &text, &size);

        if (r < 0)
                return;
        calls->answers[question].text = text;
        calls->answers[question].size = size;
        calls->answers[question].at = now;
}

static void answer(struct queue_calls *calls, struct call *call, enum queue_question question)
{
        const char *text = calls->answers[question].text;

        if (text)
                server_reply_text(call, text, calls->answers[question].size);
        else
                server_reply(call, NULL, false);
}

void queue_calls_answer(struct queue_calls *calls, usec_t now)
{
        bool encoded[_QUEUE_QUESTION_MAX] = {false};

        while (calls->n > 0) {
                enum queue_question question = calls->list[--calls->n].question;
                struct call *call = calls->list[calls->n].call;

                if (question == QUEUE_QUESTION_DOCTOR) {
                        calls->diagnose(call, calls->userdata);
                        continue;
                }
                if (!encoded[question])
                        encode(calls, question, now);
                encoded[question] = true;
                answer(calls, call, question);
        }
}

void queue_calls_forget(struct queue_calls *calls, usec_t now)
{
        for (enum queue_question i = 0; i < _QUEUE_QUESTION_MAX; i++)
                if (usec_sub(now, calls->answers[i].at) >= KEEP_USEC)
                        forget(calls, i);
}

static void on_cancelled(struct call *call, void *userdata)
{
        struct queue_calls *calls = userdata;
        size_t i = 0;

        while (calls->list[i].call != call)
                i++;
        calls->list[i] = calls->list[--calls->n];
}

void queue_calls_add(struct queue_calls *calls, struct call *call, enum queue_question question, usec_t now)
{
        queue_calls_forget(calls, now);
        if (call_is_view(call) && calls->answers[question].text) {
                answer(calls, call, question);
                return;
        }
        calls->list[calls->n].question = question;
        calls->list[calls->n++].call = call;
        server_keep(call, on_cancelled, calls);
        queue_reading_begin(calls->links);
}
