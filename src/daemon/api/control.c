/* SPDX-License-Identifier: MIT */
/* Carries out the calls of the control interface: checks what they ask for, records it in the model, replies.
 */
#include "daemon/api/control.h"
#include "daemon/api/events.h"
#include "daemon/api/watch.h"
#include "model/command.h"
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#define REDIS_MAX 64
/* How old a rendered status may grow while nothing changes: its ages go on. */
#define STATUS_KEEP_USEC (50 * USEC_PER_MSEC)

struct control {
        struct control_host host;
        struct watch_list watches;
        struct events *events;
        char *status; /* the reply to GetStatus for all fleets, or NULL */
        size_t status_size;
        uint64_t status_serial;
        usec_t status_at;
};

int control_new(const struct control_host *host, struct control **ret)
{
        struct control *control = calloc(1, sizeof(*control));

        if (!control)
                return -ENOMEM;
        control->host = *host;
        control->watches = (struct watch_list){
                .world = host->world, .event = host->event, .now = host->now, .userdata = host->userdata};
        int r = events_new(&control->events);
        if (r < 0) {
                free(control);
                return r;
        }
        *ret = control;
        return 0;
}

struct control *control_free(struct control *control)
{
        if (!control)
                return NULL;
        assert(!control->watches.first);
        events_free(control->events);
        free(control->status);
        free(control);
        return NULL;
}

static void control_changed(struct control *control)
{
        free(control->status);
        control->status = NULL;
        control->host.changed(control->host.userdata);
}

static void refuse_parameter(struct call *call, const char *name)
{
        server_reply_error(call, VARLINK_INVALID_PARAMETER, json_pack("{s:s}", "parameter", name));
}

static _printf_(2, 3) void refuse(struct call *call, const char *format, ...)
{
        char reason[512];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(reason, sizeof(reason), format, arguments);
        va_end(arguments);
        server_reply_error(call, CONTROL_REFUSED,
                           json_pack("{s:o, s:[]}", "reason", varlink_text(reason), "details"));
}

static json_t *fleet_names(const struct world *world)
{
        _cleanup_json_ json_t *names = json_array();

        for (size_t i = 0; i < world->n_fleets; i++)
                if (json_array_append_new(names, varlink_text(world->fleets[i]->settings->name)) < 0)
                        return NULL;
        return TAKE_PTR(names);
}

static void refuse_fleet(struct control *control, struct call *call, const char *name)
{
        server_reply_error(call, CONTROL_UNKNOWN_FLEET,
                           json_pack("{s:s, s:o}", "name", name, "fleets", fleet_names(control->host.world)));
}

static void refuse_worker(struct call *call, const char *id, const struct fleet *fleet)
{
        json_t *ids = json_array();

        for (size_t i = 0; i < fleet->n_workers; i++) {
                if (fleet->workers[i]->state == WORKER_GONE)
                        continue;
                if (json_array_append_new(ids, varlink_text(WORKER_ID(fleet->workers[i]))) < 0) {
                        json_decref(ids);
                        ids = NULL;
                        break;
                }
        }
        server_reply_error(call, CONTROL_UNKNOWN_WORKER, json_pack("{s:s, s:o}", "name", id, "workers", ids));
}

/* Neither a fleet nor a worker has that name. */
static void refuse_unknown(struct control *control, struct call *call, const char *name)
{
        const char *slash = strrchr(name, '/');
        _cleanup_free_ char *fleet_name = strndup(name, slash ? (size_t)(slash - name) : strlen(name));
        const struct fleet *fleet = fleet_name ? world_fleet(control->host.world, fleet_name) : NULL;

        if (fleet)
                refuse_worker(call, name, fleet);
        else
                refuse_fleet(control, call, fleet_name ? fleet_name : name);
}

/* The fleets that a call names, each once. */
struct fleet_list {
        struct fleet **fleets; /* owned */
        size_t n_fleets;
        bool all;
};

static void fleet_list_free(struct fleet_list *list)
{
        free(list->fleets);
}

static bool fleet_list_has(const struct fleet_list *list, const struct fleet *fleet)
{
        for (size_t i = 0; i < list->n_fleets; i++)
                if (list->fleets[i] == fleet)
                        return true;
        return false;
}

/* Returns false where the call was answered with an error. */
static bool parse_fleets(struct control *control, struct call *call, json_t *parameters,
                         struct fleet_list *ret)
{
        const struct world *world = control->host.world;
        json_t *names = json_object_get(parameters, "fleets"), *name;
        size_t i;

        if (names && !json_is_null(names) && !json_is_array(names)) {
                refuse_parameter(call, "fleets");
                return false;
        }
        ret->fleets = calloc(world->n_fleets + 1, sizeof(*ret->fleets));
        if (!ret->fleets) {
                server_reply(call, NULL, false);
                return false;
        }
        if (json_array_size(names) == 0) {
                ret->all = true;
                ret->n_fleets = world->n_fleets;
                for (i = 0; i < world->n_fleets; i++)
                        ret->fleets[i] = world->fleets[i];
                return true;
        }
        json_array_foreach(names, i, name)
        {
                struct fleet *fleet;

                if (!json_is_string(name)) {
                        refuse_parameter(call, "fleets");
                        return false;
                }
                fleet = world_fleet(world, json_string_value(name));
                if (!fleet) {
                        refuse_fleet(control, call, json_string_value(name));
                        return false;
                }
                if (!fleet_list_has(ret, fleet))
                        ret->fleets[ret->n_fleets++] = fleet;
        }
        return true;
}

/* The fleet that the parameter of that name tells, or NULL where the call was answered with an error. */
static struct fleet *parse_fleet(struct control *control, struct call *call, json_t *parameters)
{
        json_t *name = json_object_get(parameters, "fleet");

        if (!json_is_string(name)) {
                refuse_parameter(call, "fleet");
                return NULL;
        }
        struct fleet *fleet = world_fleet(control->host.world, json_string_value(name));
        if (!fleet)
                refuse_fleet(control, call, json_string_value(name));
        return fleet;
}

static bool refuse_at_shutdown(struct control *control, struct call *call)
{
        if (!control->host.world->shutting_down)
                return false;
        refuse(call, "sqmgr is shutting down");
        return true;
}

static void refuse_removed(struct call *call, const struct fleet *fleet)
{
        refuse(call, "fleet '%s' is no longer configured: its workers are drained", fleet->settings->name);
}

static struct status_info status_info(const struct control *control, struct status_redis redis[REDIS_MAX])
{
        const struct control_host *host = &control->host;

        return (struct status_info){
                .version = host->version,
                .pid = getpid(),
                .started_at = host->started_at,
                .redis = redis,
                .n_redis = host->redis(host->userdata, redis, REDIS_MAX),
        };
}

static json_t *render_status(struct control *control, const struct fleet_list *list, usec_t now)
{
        struct status_redis redis[REDIS_MAX];
        struct status_info info = status_info(control, redis);

        return status_render(&info, list->fleets, list->n_fleets, now);
}

static void handle_get_status(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        _cleanup_(fleet_list_free) struct fleet_list list = {0};
        uint64_t serial = control->host.serial(control->host.userdata);

        if (!parse_fleets(control, call, parameters, &list))
                return;
        if (!list.all) {
                server_reply(call, render_status(control, &list, now), false);
                return;
        }
        if (!control->status || control->status_serial != serial ||
            usec_sub(now, control->status_at) > STATUS_KEEP_USEC) {
                char *text;
                size_t size;

                if (varlink_encode_reply(render_status(control, &list, now), false, &text, &size) < 0) {
                        server_reply(call, NULL, false);
                        return;
                }
                free(control->status);
                control->status = text;
                control->status_size = size;
                control->status_serial = serial;
                control->status_at = now;
        }
        server_reply_text(call, control->status, control->status_size);
}

/* What a caller wants to know of restarts, but for the fleets. Returns false where the call was answered with
 * an error.
 */
static bool parse_watch(struct call *call, json_t *parameters, struct watch_request *ret)
{
        json_t *wait = json_object_get(parameters, "wait"), *workers = json_object_get(parameters, "workers");
        const char *what = json_string_value(wait);

        if (wait && !json_is_null(wait) &&
            (!what || (strcmp(what, "replaced") != 0 && strcmp(what, "drained") != 0))) {
                refuse_parameter(call, "wait");
                return false;
        }
        if (workers && !json_is_null(workers) && !json_is_boolean(workers)) {
                refuse_parameter(call, "workers");
                return false;
        }
        if (what && !call_wants_more(call)) {
                server_reply_error(call, VARLINK_EXPECTED_MORE, json_object());
                return false;
        }
        *ret = (struct watch_request){
                .wait = call_wants_more(call),
                .drained = what && strcmp(what, "drained") == 0,
                .workers = json_is_true(workers),
        };
        return true;
}

static void handle_restart(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        _cleanup_(fleet_list_free) struct fleet_list list = {0};
        _cleanup_free_ struct watch_order *orders = NULL;
        struct watch_request request;

        if (!parse_watch(call, parameters, &request) || refuse_at_shutdown(control, call) ||
            !parse_fleets(control, call, parameters, &list))
                return;
        orders = calloc(list.n_fleets + 1, sizeof(*orders));
        if (!orders) {
                server_reply(call, NULL, false);
                return;
        }
        for (size_t i = 0; i < list.n_fleets; i++) {
                struct fleet *fleet = list.fleets[i];

                if (fleet->rollout.state == ROLLOUT_RUNNING)
                        orders[i].superseded = fleet->generation;
                orders[i].refused = command_restart(control->host.world, fleet, now) == COMMAND_STOPPED;
        }
        control_changed(control);
        request.fleets = list.fleets;
        request.n_fleets = list.n_fleets;
        request.orders = orders;
        watch_reply(&control->watches, call, &request, now);
}

static void handle_follow(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        _cleanup_(fleet_list_free) struct fleet_list list = {0};
        struct watch_request request;

        if (!parse_watch(call, parameters, &request) || !parse_fleets(control, call, parameters, &list))
                return;
        request.fleets = list.fleets;
        request.n_fleets = list.n_fleets;
        watch_reply(&control->watches, call, &request, now);
}

static void handle_abort(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        _cleanup_(fleet_list_free) struct fleet_list list = {0};
        _cleanup_json_ json_t *aborted = json_array();
        bool failed = false;

        if (!parse_fleets(control, call, parameters, &list))
                return;
        for (size_t i = 0; i < list.n_fleets; i++) {
                struct fleet *fleet = list.fleets[i];

                if (fleet->rollout.state == ROLLOUT_RUNNING)
                        failed |= json_array_append_new(aborted, varlink_text(fleet->settings->name)) < 0;
                command_abort(control->host.world, fleet, now);
        }
        control_changed(control);
        server_reply(call, failed ? NULL : json_pack("{s:O}", "aborted", aborted), false);
}

static void handle_quiet(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        struct world *world = control->host.world;
        json_t *target = json_object_get(parameters, "target");
        enum command_outcome outcome;

        if (!json_is_string(target)) {
                refuse_parameter(call, "target");
                return;
        }
        const char *name = json_string_value(target);
        struct fleet *fleet = world_fleet(world, name);
        struct worker *worker = fleet ? NULL : world_worker(world, name);
        if (!fleet && !worker) {
                refuse_unknown(control, call, name);
                return;
        }
        outcome = fleet ? command_quiet_fleet(world, fleet, now) : command_quiet_worker(world, worker, now);
        control_changed(control);
        server_reply(call, json_pack("{s:b}", "leaving", (int)(outcome == COMMAND_LEAVING)), false);
}

static void handle_stop(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        json_t *force = json_object_get(parameters, "force");

        if (force && !json_is_null(force) && !json_is_boolean(force)) {
                refuse_parameter(call, "force");
                return;
        }
        struct fleet *fleet = parse_fleet(control, call, parameters);
        if (!fleet)
                return;
        command_stop(control->host.world, fleet, json_is_true(force), now);
        control_changed(control);
        server_reply(call, json_object(), false);
}

static void handle_start(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        struct fleet *fleet = parse_fleet(control, call, parameters);

        if (!fleet || refuse_at_shutdown(control, call))
                return;
        if (command_start(control->host.world, fleet, now) == COMMAND_REMOVED) {
                refuse_removed(call, fleet);
                return;
        }
        control_changed(control);
        server_reply(call, json_object(), false);
}

static void handle_scale(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        json_t *json = json_object_get(parameters, "count");
        json_int_t count = json_integer_value(json);

        if (!json_is_integer(json)) {
                refuse_parameter(call, "count");
                return;
        }
        struct fleet *fleet = parse_fleet(control, call, parameters);
        if (!fleet || refuse_at_shutdown(control, call))
                return;
        enum command_outcome outcome = COMMAND_RANGE;
        if (count >= 1 && count <= UINT32_MAX)
                outcome = command_scale(control->host.world, fleet, (unsigned)count, now);
        if (outcome == COMMAND_REMOVED) {
                refuse_removed(call, fleet);
                return;
        }
        if (outcome == COMMAND_RANGE) {
                refuse(call,
                       "fleet '%s' cannot be scaled to %lld: the count must be from 1 to %u "
                       "(max_processes)",
                       fleet->settings->name, (long long)count, fleet_scale_max(fleet));
                return;
        }
        control_changed(control);
        server_reply(call, json_object(), false);
}

/* A JSON list of lines, which are released. */
static json_t *take_lines(char **lines)
{
        json_t *list = json_array();

        for (size_t i = 0; lines && lines[i]; i++) {
                if (list && json_array_append_new(list, varlink_text(lines[i])) < 0) {
                        json_decref(list);
                        list = NULL;
                }
                free(lines[i]);
        }
        free(lines);
        return list;
}

static void handle_reload(struct control *control, struct call *call, json_t *parameters _unused_,
                          usec_t now _unused_)
{
        char **lines = NULL;
        int r = control->host.reload(control->host.userdata, &lines);

        if (r < 0) {
                refuse(call, "cannot read the configuration again, the old one stays in force: %s",
                       strerrordesc_np(-r));
                return;
        }
        json_t *list = take_lines(lines);
        if (r > 0) {
                server_reply_error(call, CONTROL_REFUSED,
                                   json_pack("{s:s, s:o}", "reason",
                                             "the configuration has errors, the old one stays in force",
                                             "details", list));
                return;
        }
        control_changed(control);
        server_reply(call, json_pack("{s:o}", "changes", list), false);
}

static void handle_reexec(struct control *control, struct call *call, json_t *parameters _unused_,
                          usec_t now _unused_)
{
        control->host.reexec(control->host.userdata, call);
}

json_t *control_reexec_reply(const struct control *control)
{
        return json_pack("{s:s, s:I}", "version", control->host.version, "pid", (json_int_t)getpid());
}

static void handle_get_events(struct control *control, struct call *call, json_t *parameters,
                              usec_t now _unused_)
{
        _cleanup_(fleet_list_free) struct fleet_list list = {0};
        json_t *worker = json_object_get(parameters, "worker");
        const char *id = json_string_value(worker);

        if (worker && !json_is_null(worker) && !id) {
                refuse_parameter(call, "worker");
                return;
        }
        if (!parse_fleets(control, call, parameters, &list))
                return;
        if (id && !world_worker(control->host.world, id) && !events_have(control->events, id)) {
                refuse_unknown(control, call, id);
                return;
        }
        events_reply(control->events, call, list.fleets, list.n_fleets, list.all, id, call_wants_more(call));
}

void control_reply_metrics(struct control *control, struct call *call)
{
        const struct control_host *host = &control->host;
        struct status_redis redis[REDIS_MAX];
        struct status_info info = status_info(control, redis);
        _cleanup_free_ char *text =
                metrics_render(&info, host->ticks, host->world, host->now(host->userdata));

        server_reply(call, text ? json_pack("{s:s}", "text", text) : NULL, false);
}

static void handle_get_metrics(struct control *control, struct call *call, json_t *parameters _unused_,
                               usec_t now _unused_)
{
        control->host.metrics(control->host.userdata, call);
}

static void handle_get_queues(struct control *control, struct call *call, json_t *parameters _unused_,
                              usec_t now _unused_)
{
        control->host.queues(control->host.userdata, call);
}

static void handle_get_jobs(struct control *control, struct call *call, json_t *parameters,
                            usec_t now _unused_)
{
        _cleanup_(fleet_list_free) struct fleet_list list = {0};

        if (parse_fleets(control, call, parameters, &list))
                control->host.jobs(control->host.userdata, call, list.fleets, list.n_fleets);
}

static void handle_get_diagnosis(struct control *control, struct call *call, json_t *parameters _unused_,
                                 usec_t now _unused_)
{
        control->host.doctor(control->host.userdata, call);
}

static void handle_ping(struct control *control _unused_, struct call *call, json_t *parameters _unused_,
                        usec_t now _unused_)
{
        server_reply(call, json_object(), false);
}

static void handle_get_version(struct control *control, struct call *call, json_t *parameters _unused_,
                               usec_t now _unused_)
{
        server_reply(call, json_pack("{s:s}", "version", control->host.version), false);
}

#define PARAMETERS_MAX 3

static const struct handler {
        const char *method;
        void (*handle)(struct control *control, struct call *call, json_t *parameters, usec_t now);
        const char *parameters[PARAMETERS_MAX];
} handlers[] = {
        {"GetStatus", handle_get_status, {"fleets"}},
        {"Restart", handle_restart, {"fleets", "wait", "workers"}},
        {"Follow", handle_follow, {"fleets", "wait", "workers"}},
        {"Abort", handle_abort, {"fleets"}},
        {"Quiet", handle_quiet, {"target"}},
        {"Stop", handle_stop, {"fleet", "force"}},
        {"Start", handle_start, {"fleet"}},
        {"Scale", handle_scale, {"fleet", "count"}},
        {"Reload", handle_reload, {NULL}},
        {"Reexec", handle_reexec, {NULL}},
        {"GetEvents", handle_get_events, {"fleets", "worker"}},
        {"GetMetrics", handle_get_metrics, {NULL}},
        {"GetQueues", handle_get_queues, {NULL}},
        {"GetJobs", handle_get_jobs, {"fleets"}},
        {"GetDiagnosis", handle_get_diagnosis, {NULL}},
        {"Ping", handle_ping, {NULL}},
        {"GetVersion", handle_get_version, {NULL}},
};

/* A parameter that the method does not have: a misspelt one must not be passed over. Returns it, or NULL. */
static const char *unknown_parameter(const struct handler *handler, json_t *parameters)
{
        const char *key;
        json_t *value;

        json_object_foreach(parameters, key, value)
        {
                bool known = false;

                for (size_t i = 0; i < PARAMETERS_MAX && handler->parameters[i]; i++)
                        known = known || strcmp(handler->parameters[i], key) == 0;
                if (!known)
                        return key;
        }
        return NULL;
}

void control_handle(struct call *call, const struct control_method *method, json_t *parameters,
                    void *userdata)
{
        struct control *control = userdata;

        for (size_t i = 0; i < ELEMENTSOF(handlers); i++) {
                if (strcmp(handlers[i].method, method->name) != 0)
                        continue;
                const char *unknown = unknown_parameter(&handlers[i], parameters);
                if (unknown)
                        refuse_parameter(call, unknown);
                else
                        handlers[i].handle(control, call, parameters,
                                           control->host.now(control->host.userdata));
                return;
        }
        server_reply_error(call, VARLINK_METHOD_NOT_IMPLEMENTED, json_pack("{s:s}", "method", method->name));
}

void control_event(struct control *control, const struct event *event, usec_t realtime)
{
        events_add(control->events, event, realtime);
}

void control_tick(struct control *control, usec_t now)
{
        events_tick(control->events);
        /* Nobody has asked for a while: of many workers it is large, and so was what it was made of. */
        if (control->status && usec_sub(now, control->status_at) > USEC_PER_SEC) {
                free(control->status);
                control->status = NULL;
                (void)malloc_trim(0);
        }
        watch_tick(&control->watches, now);
}
