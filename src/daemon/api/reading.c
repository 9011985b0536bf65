/* SPDX-License-Identifier: MIT */
/* Handles the read-only calls: GetStatus, GetEvents, GetJobs, GetMetrics, GetQueues and GetDiagnosis. */
#include "daemon/api/handler.h"
#include "daemon/api/status.h"
#include "io/clock.h"
#include "model/fleet.h"
#include "model/world.h"

#define REDIS_MAX 64
/* Maximum age of a rendered status while the model is unchanged: ages in the status still grow. */
#define STATUS_KEEP_USEC (50 * USEC_PER_MSEC)

/* redis is storage for status_info.redis. Strings in redis stay valid until the next iteration of the
 * loop. */
static struct status_info status_info(const struct control *control, struct status_redis redis[REDIS_MAX])
{
        const struct control_host *host = &control->host;
        const struct links *links = &host->persist->runtime->links;
        size_t n = MIN((size_t)REDIS_MAX, links->n);

        for (size_t i = 0; i < n; i++) {
                const struct reader *link = links->list[i]->reader;
                usec_t rtt_usec = reader_rtt_usec(link);

                redis[i] = (struct status_redis){
                        .kind = link_kind(links->list[i]),
                        .is_database = link_is_database(links->list[i]),
                        .url = reader_url_text(link),
                        .server = reader_server_text(link),
                        .state = reader_state_name(reader_state(link)),
                        .error = reader_error(link),
                        .queues = links->list[i]->queues,
                        .rtt_ms = rtt_usec == 0 ? -1 : (double)rtt_usec / (double)USEC_PER_MSEC,
                };
        }
        return (struct status_info){
                .instance = host->instance,
                .version = host->version,
                .settings = host->settings,
                .pid = getpid(),
                .started_at = host->started_at,
                .realtime = clock_now(CLOCK_REALTIME),
                .world = host->world,
                .subsystems = &host->persist->runtime->subsystems,
                .redis = redis,
                .n_redis = n,
        };
}

static json_t *render_status(struct control *control, const struct handler_fleets *list, usec_t now)
{
        struct status_redis redis[REDIS_MAX];
        struct status_info info = status_info(control, redis);
        struct problem_storage storage;

        info.facts = &storage.facts;
        problems_collect(&control->host, &storage, now);
        return status_render(&info, list->fleets, list->n_fleets, now);
}

void handle_get_status(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        _cleanup_(handler_fleets_free) struct handler_fleets list = {0};
        uint64_t serial = control->host.persist->runtime->wakeup->pass.serial;
        bool is_view = call_is_view(call);

        if (!handler_parse_fleets(control, call, parameters, &list))
                return;
        if (!list.all) {
                call_reply(call, render_status(control, &list, now), false);
                return;
        }
        struct shared_reply *reply = &control->status[is_view].reply;
        if (!reply->text || control->status[is_view].serial != serial ||
            usec_sub(now, control->status[is_view].at) > STATUS_KEEP_USEC) {
                shared_reply_clear(reply);
                shared_reply_make(reply, is_view, NULL, render_status(control, &list, now));
                control->status[is_view].serial = serial;
                control->status[is_view].at = now;
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
        if (id && !world_worker(control->host.world, id) && !events_have(control->events, id)) {
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

json_t *handler_metrics(const struct control *control)
{
        const struct control_host *host = &control->host;
        struct status_redis redis[REDIS_MAX];
        struct status_info info = status_info(control, redis);
        struct problem_storage storage;
        usec_t now = clock_now(CLOCK_MONOTONIC);

        info.facts = &storage.facts;
        problems_collect(&control->host, &storage, now);
        _cleanup_free_ char *text = metrics_collect(&info, &host->persist->runtime->wakeup->pass.ticks, now);
        return text ? json_pack("{s:s}", "text", text) : NULL;
}

void handle_get_metrics(struct control *control, struct call *call, json_t *parameters _unused_, usec_t now)
{
        queue_calls_add(control, call, QUEUE_QUESTION_METRICS, now);
}

void handle_get_queues(struct control *control, struct call *call, json_t *parameters _unused_, usec_t now)
{
        queue_calls_add(control, call, QUEUE_QUESTION_QUEUES, now);
}

void handle_get_jobs(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        _cleanup_(handler_fleets_free) struct handler_fleets list = {0};

        if (handler_parse_fleets(control, call, parameters, &list))
                jobs_calls_add(&control->jobs_calls, call, list.fleets, list.n_fleets, now);
}

/* With autoscaled fleets, the queues are read first. */
void handle_get_diagnosis(struct control *control, struct call *call, json_t *parameters _unused_, usec_t now)
{
        const struct world *world = control->host.world;
        bool scales = false;

        WORLD_FOREACH_FLEET(world, fleet)
                scales |= fleet_scales(fleet);
        if (scales)
                queue_calls_add(control, call, QUEUE_QUESTION_DOCTOR, now);
        else
                doctor_request(&control->host, call);
}
