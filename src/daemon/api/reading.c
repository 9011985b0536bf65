/* SPDX-License-Identifier: MIT */
/* Handles the read-only calls: GetStatus, GetEvents, GetJobs, GetMetrics, GetQueues and GetDiagnosis. */
#include "daemon/api/handler.h"
#include "io/clock.h"
#include "model/world.h"

/* Maximum age of a rendered status while the model is unchanged: ages in the status still grow. */
#define STATUS_KEEP_USEC (50 * USEC_PER_MSEC)

void handle_get_status(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        _cleanup_(handler_fleets_free) struct handler_fleets list = {0};
        uint64_t serial = control->runtime->wakeup->pass.serial;
        bool is_view = call_is_view(call);

        if (!handler_parse_fleets(control, call, parameters, &list))
                return;
        if (!list.all) {
                call_reply(call, handler_status(control, &list, now), false);
                return;
        }
        struct shared_reply *reply = &control->latest[REPLY_STATUS][is_view].reply;
        if (!reply->text || control->latest[REPLY_STATUS][is_view].serial != serial ||
            usec_sub(now, control->latest[REPLY_STATUS][is_view].at) > STATUS_KEEP_USEC) {
                shared_reply_clear(reply);
                shared_reply_make(reply, is_view, NULL, handler_status(control, &list, now));
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
        events_reply(control->events, call,
                     &(struct events_request){
                             .fleets = list.fleets,
                             .n_fleets = list.n_fleets,
                             .all = list.all,
                             .worker = id,
                             .from = json_is_number(after)
                                             ? events_after(control->events, json_number_value(after))
                                             : 0,
                     });
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
