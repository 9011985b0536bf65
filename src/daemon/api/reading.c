/* SPDX-License-Identifier: MIT */
/* Handles the read-only calls: GetStatus, GetEvents, GetJobs, GetMetrics, GetQueues and GetDiagnosis. */
#include "daemon/api/handler.h"
#include "frameworks/framework.h"
#include "io/clock.h"
#include "model/world.h"

/* Maximum age of a rendered status while the model is unchanged: ages in the status still grow. */
#define STATUS_KEEP_USEC (50 * USEC_PER_MSEC)
/* Maximum age of a reply with queues that a read-only client gets. */
#define QUEUES_KEEP_USEC USEC_PER_SEC

/* storage: of status_info.facts. */
static struct status_info status_info(const struct control *control, struct problem_storage *storage,
                                      usec_t now)
{
        problems_collect(control, storage, now);
        return (struct status_info){
                .instance = control->instance,
                .version = control->version,
                .settings = control->settings,
                .pid = getpid(),
                .started_at = control->started_at,
                .realtime = clock_now(CLOCK_REALTIME),
                .world = control->runtime->world,
                .subsystems = &control->runtime->subsystems,
                .facts = &storage->facts,
        };
}

static json_t *render_status(const struct control *control, const struct handler_fleets *list, usec_t now)
{
        struct problem_storage storage;
        const struct status_info info = status_info(control, &storage, now);

        return status_render(&info, list->fleets, list->n_fleets, now);
}

static json_t *render_metrics(const struct control *control)
{
        struct problem_storage storage;
        usec_t now = clock_now(CLOCK_MONOTONIC);
        const struct status_info info = status_info(control, &storage, now);

        _cleanup_free_ char *text = metrics_collect(&info, &control->runtime->wakeup->pass.ticks, now);
        return text ? json_pack("{s:s}", "text", text) : NULL;
}

void handle_get_status(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        _cleanup_(handler_fleets_free) struct handler_fleets list = {0};
        uint64_t serial = control->runtime->wakeup->pass.serial;
        bool is_view = call_is_view(call);

        if (!handler_parse_fleets(control, call, parameters, &list))
                return;
        if (!list.all) {
                call_reply(call, render_status(control, &list, now), false);
                return;
        }
        struct shared_reply *reply = &control->latest[REPLY_STATUS][is_view].reply;
        if (!reply->text || control->latest[REPLY_STATUS][is_view].serial != serial ||
            usec_sub(now, control->latest[REPLY_STATUS][is_view].at) > STATUS_KEEP_USEC) {
                shared_reply_clear(reply);
                shared_reply_make(reply, is_view, NULL, render_status(control, &list, now));
                control->latest[REPLY_STATUS][is_view].serial = serial;
                control->latest[REPLY_STATUS][is_view].at = now;
        }
        call_reply_shared(call, reply);
}

void handle_get_events(struct control *control, struct call *call, json_t *parameters, usec_t now _unused_)
{
        _cleanup_(handler_fleets_free) struct handler_fleets list = {0};
        const json_t *after = json_object_get(parameters, "after");
        const char *id;

        if (!handler_parse_text(call, parameters, "worker", &id))
                return;
        if (after && !json_is_null(after) && !json_is_number(after)) {
                handler_refuse_parameter(call, "after");
                return;
        }
        if (!handler_parse_fleets(control, call, parameters, &list))
                return;
        if (id && !world_worker(control->runtime->world, id) && !events_have(control->events, id)) {
                handler_refuse_unknown(control, call, id);
                return;
        }
        events_reply(control->events, call, &list, id,
                     json_is_number(after) ? events_after(control->events, json_number_value(after)) : 0);
}

static json_t *render_queues(const struct link *link)
{
        _cleanup_json_ json_t *list = json_array();

        QUEUES_FOREACH(link->queues, queue) {
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

static json_t *render_links(const struct runtime *runtime)
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
                shared_reply_make(ret, is_view, NULL, render_links(runtime));
                return;
        }
        const struct error_report *error = queue_reading_error(unread);
        snprintf(reason, sizeof(reason), "cannot read the queues of %s %s: %.400s", link_noun(unread),
                 reader_url_text(unread->reader), error->text);
        json_t *parameters = json_pack("{s:o, s:[]}", "reason", varlink_text(reason), "details");
        shared_reply_make(ret, is_view, CONTROL_REFUSED, quoted_put(parameters, &error->quoted));
}

static void encode(struct control *control, enum reply_kind kind, bool is_view, usec_t now)
{
        struct shared_reply *reply = &control->latest[kind][is_view].reply;

        shared_reply_clear(reply);
        if (kind == REPLY_QUEUES)
                encode_queues(control->runtime, is_view, reply);
        else
                shared_reply_make(reply, is_view, NULL, render_metrics(control));
        control->latest[kind][is_view].at = now;
}

void queue_calls_answer(struct control *control, usec_t now)
{
        bool encoded[_REPLY_KIND_MAX][2] = {{false}};

        while (control->n_queue_calls > 0) {
                enum reply_kind kind = control->queue_calls[--control->n_queue_calls].kind;
                struct call *call = control->queue_calls[control->n_queue_calls].call;
                bool is_view = call_is_view(call);

                if (kind == REPLY_DIAGNOSIS) {
                        doctor_request(control, call);
                        continue;
                }
                if (!encoded[kind][is_view])
                        encode(control, kind, is_view, now);
                encoded[kind][is_view] = true;
                call_reply_shared(call, &control->latest[kind][is_view].reply);
        }
}

static void on_cancelled(struct call *call, void *userdata)
{
        struct control *control = userdata;
        size_t i = 0;

        while (control->queue_calls[i].call != call)
                i++;
        control->queue_calls[i] = control->queue_calls[--control->n_queue_calls];
}

/* Replies once the queues were read. A read-only client may get a reply at once, at most one second old. */
static void queue_calls_add(struct control *control, struct call *call, enum reply_kind kind, usec_t now)
{
        (void)handler_forget(control, usec_sub(now, QUEUES_KEEP_USEC));
        if (call_is_view(call) && control->latest[kind][true].reply.text) {
                call_reply_shared(call, &control->latest[kind][true].reply);
                return;
        }
        control->queue_calls[control->n_queue_calls].kind = kind;
        control->queue_calls[control->n_queue_calls++].call = call;
        call_keep(call, on_cancelled, control);
        queue_reading_begin(control->runtime);
}

void handle_get_metrics(struct control *control, struct call *call, json_t *parameters _unused_, usec_t now)
{
        queue_calls_add(control, call, REPLY_METRICS, now);
}

void handle_get_queues(struct control *control, struct call *call, json_t *parameters _unused_, usec_t now)
{
        queue_calls_add(control, call, REPLY_QUEUES, now);
}

void handle_get_jobs(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        _cleanup_(handler_fleets_free) struct handler_fleets list = {0};

        if (handler_parse_fleets(control, call, parameters, &list))
                jobs_calls_add(control, call, list.fleets, list.n_fleets, now);
}

/* With autoscaled fleets, the queues are read first. */
void handle_get_diagnosis(struct control *control, struct call *call, json_t *parameters _unused_, usec_t now)
{
        const struct world *world = control->runtime->world;
        bool scales = false;

        WORLD_FOREACH_FLEET(world, fleet)
                scales |= fleet_scales(fleet);
        if (scales)
                queue_calls_add(control, call, REPLY_DIAGNOSIS, now);
        else
                doctor_request(control, call);
}
