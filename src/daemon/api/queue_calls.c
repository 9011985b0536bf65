/* SPDX-License-Identifier: MIT */
/* Answers GetQueues, and the calls that need queues. */
#include "daemon/api/handler.h"
#include "frameworks/framework.h"
#include "model/world.h"

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

static json_t *render_link(const struct link *link)
{
        const struct queues none = {0}, *queues = link->queues ? link->queues : &none;
        const struct error_report *error = queue_reading_error(link);
        json_t *entry = json_pack("{s:o, s:o, s:I, s:I, s:I, s:o, s:I}", "url",
                                  varlink_text(reader_url_text(link->reader)), "error",
                                  varlink_text(error->text), "retry", (json_int_t)queues->retry, "schedule",
                                  (json_int_t)queues->schedule, "dead", (json_int_t)queues->dead, "queues",
                                  render_queues(link), "queues_left_out", (json_int_t)queues->left_out);

        return quoted_put(entry, &error->quoted);
}

/* The settings do not name the Redis that is the broker of the fleet, and it may be another server. */
static json_t *render_unnamed(const struct fleet *fleet)
{
        char text[128];

        snprintf(text, sizeof(text), "fleet '%s'", fleet->settings->name);
        return json_pack("{s:s, s:s, s:i, s:i, s:i, s:[], s:i}", "url", text, "error",
                         "its settings name no Redis with queues; set redis_url if its broker is a Redis",
                         "retry", 0, "schedule", 0, "dead", 0, "queues", "queues_left_out", 0);
}

static json_t *render(const struct runtime *runtime)
{
        _cleanup_json_ json_t *list = json_array();

        FOREACH_POINTER(link, runtime->links.list, runtime->links.n)
                /* Otherwise the framework does not report queues. */
                if (link->framework->has_queues && json_array_append_new(list, render_link(link)) < 0)
                        return NULL;
        WORLD_FOREACH_FLEET(runtime->world, fleet)
                if (fleet_settings_have_broker(fleet->settings) && !fleet->queue_link &&
                    json_array_append_new(list, render_unnamed(fleet)) < 0)
                        return NULL;
        return json_pack("{s:O}", "redis", list);
}

static void encode_queues(const struct runtime *runtime, bool is_view, struct shared_reply *ret)
{
        const struct link *unread = NULL;
        bool any = false;
        char reason[512];

        for (size_t i = runtime->links.n; i-- > 0;) {
                any |= !!runtime->links.list[i]->queues;
                if (runtime->links.list[i]->framework->has_queues)
                        unread = runtime->links.list[i];
        }
        if (any || !unread) {
                shared_reply_make(ret, is_view, NULL, render(runtime));
                return;
        }
        const struct error_report *error = queue_reading_error(unread);
        snprintf(reason, sizeof(reason), "cannot read the queues of %s %s: %.400s", link_noun(unread),
                 reader_url_text(unread->reader), error->text);
        json_t *parameters = json_pack("{s:o, s:[]}", "reason", varlink_text(reason), "details");
        shared_reply_make(ret, is_view, CONTROL_REFUSED, quoted_put(parameters, &error->quoted));
}

static void encode(struct control *control, enum queue_question question, bool is_view, usec_t now)
{
        struct shared_reply *reply = &control->queue_calls.answers[question][is_view].reply;

        shared_reply_clear(reply);
        if (question == QUEUE_QUESTION_QUEUES)
                encode_queues(control->host.runtime, is_view, reply);
        else
                shared_reply_make(reply, is_view, NULL, handler_metrics(control));
        control->queue_calls.answers[question][is_view].at = now;
}

void queue_calls_answer(struct control *control, usec_t now)
{
        struct queue_calls *calls = &control->queue_calls;
        bool encoded[_QUEUE_QUESTION_MAX][2] = {{false}};

        while (calls->n > 0) {
                enum queue_question question = calls->list[--calls->n].question;
                struct call *call = calls->list[calls->n].call;
                bool is_view = call_is_view(call);

                if (question == QUEUE_QUESTION_DOCTOR) {
                        doctor_request(&control->host, call);
                        continue;
                }
                if (!encoded[question][is_view])
                        encode(control, question, is_view, now);
                encoded[question][is_view] = true;
                call_reply_shared(call, &calls->answers[question][is_view].reply);
        }
}

void queue_calls_forget(struct control *control, usec_t now)
{
        for (enum queue_question i = 0; i < _QUEUE_QUESTION_MAX; i++)
                for (unsigned view = 0; view < 2; view++)
                        if (usec_sub(now, control->queue_calls.answers[i][view].at) >= KEEP_USEC)
                                shared_reply_clear(&control->queue_calls.answers[i][view].reply);
}

static void on_cancelled(struct call *call, void *userdata)
{
        struct queue_calls *calls = userdata;
        size_t i = 0;

        while (calls->list[i].call != call)
                i++;
        calls->list[i] = calls->list[--calls->n];
}

void queue_calls_add(struct control *control, struct call *call, enum queue_question question, usec_t now)
{
        struct queue_calls *calls = &control->queue_calls;

        queue_calls_forget(control, now);
        if (call_is_view(call) && calls->answers[question][true].reply.text) {
                call_reply_shared(call, &calls->answers[question][true].reply);
                return;
        }
        calls->list[calls->n].question = question;
        calls->list[calls->n++].call = call;
        call_keep(call, on_cancelled, calls);
        queue_reading_begin(control->host.runtime);
}
