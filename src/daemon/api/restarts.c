/* SPDX-License-Identifier: MIT */
/* Handles the orders: Restart, Rollback, Follow and Abort; Quiet, Stop, Start and Scale. */
#include "daemon/api/handler.h"
#include "daemon/workers/side_start.h"
#include "decide/command.h"
#include "io/clock.h"
#include "model/counts.h"
#include "model/rollout.h"
#include "model/world.h"

/* Replies with the outcome of the order. count is the requested count of Scale. */
static void answer(struct control *control, struct call *call, const struct fleet *fleet,
                   enum command_outcome outcome, json_int_t count)
{
        const char *name = fleet->settings->name;

        if (outcome == COMMAND_REMOVED)
                handler_refuse_removed(call, fleet);
        else if (outcome == COMMAND_FIXED)
                handler_refuse(call,
                               "fleet '%s' has no active_process_max, so its count does not follow its "
                               "queues; set active_process_max or name a count",
                               name);
        else if (outcome == COMMAND_RANGE && count == 0)
                handler_refuse(call, "fleet '%s' cannot be scaled to 0; to stop it, run 'sqmgrctl stop %s'",
                               name, name);
        else if (outcome == COMMAND_RANGE)
                handler_refuse(call,
                               "fleet '%s' cannot be scaled to %lld; the count must be from %u to %u "
                               "(max_processes)",
                               name, (long long)count, fleet_scale_min(fleet), fleet_max_processes(fleet));
        else
                handler_done(control, call);
}

/* Replies with the outcome. exits: quieting stops the worker. */
static void reply_to_worker_order(struct call *call, enum command_outcome outcome, bool exits)
{
        call_reply(call,
                   json_pack("{s:b, s:b, s:b, s:b}", "leaving", (int)(outcome == COMMAND_LEAVING), "exits",
                             (int)exits, "waits", (int)(outcome == COMMAND_WAITS), "kept",
                             (int)(outcome == COMMAND_KEPT)),
                   false);
}

void handle_quiet(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        const struct world *world = control->runtime->world;
        json_t *target = json_object_get(parameters, "target");
        const struct orderer by = handler_orderer(call);
        enum command_outcome outcome;

        if (!json_is_string(target)) {
                handler_refuse_parameter(call, "target");
                return;
        }
        const char *name = json_string_value(target);
        struct fleet *fleet = world_fleet(world, name);
        struct worker *worker = fleet ? NULL : world_worker(world, name);
        if (!fleet && !worker) {
                handler_refuse_unknown(control, call, name);
                return;
        }
        outcome = fleet ? command_quiet_fleet(fleet, &by, now) : command_quiet_worker(worker, &by, now);
        if (!handler_record(control, call))
                return;
        bool exits = fleet ? fleet->settings->traits->quiet_is_stop : worker_quiet_is_stop(worker);
        reply_to_worker_order(call, outcome, exits);
}

void handle_stop(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        const struct orderer by = handler_orderer(call);
        bool force;

        if (!handler_parse_flag(call, parameters, "force", &force))
                return;
        const char *name = json_string_value(json_object_get(parameters, "fleet"));
        struct worker *worker = name ? world_worker(control->runtime->world, name) : NULL;
        if (worker) {
                enum command_outcome outcome = command_stop_worker(worker, force, &by, now);

                if (handler_record(control, call))
                        reply_to_worker_order(call, outcome, worker_quiet_is_stop(worker));
                return;
        }
        struct fleet *fleet = handler_parse_fleet(control, call, parameters);
        if (!fleet)
                return;
        (void)command_stop(fleet, force, &by, now);
        if (handler_record(control, call))
                call_reply(call, json_pack("{s:n, s:n, s:n, s:n}", "leaving", "exits", "waits", "kept"),
                           false);
}

void handle_start(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        const struct orderer by = handler_orderer(call);
        struct fleet *fleet = handler_parse_fleet(control, call, parameters);

        if (fleet && !handler_refuse_at_shutdown(control, call) && !handler_refuse_unrecorded(control, call))
                answer(control, call, fleet, command_start(fleet, &by, now), 0);
}

void handle_scale(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        const json_t *json = json_object_get(parameters, "count");
        json_int_t count = json_integer_value(json);
        const struct orderer by = handler_orderer(call);
        enum command_outcome outcome = COMMAND_RANGE;
        bool automatic;

        if (!handler_parse_flag(call, parameters, "auto", &automatic))
                return;
        if (!automatic && !json_is_integer(json)) {
                handler_refuse_parameter(call, "count");
                return;
        }
        struct fleet *fleet = handler_parse_fleet(control, call, parameters);
        if (!fleet || handler_refuse_at_shutdown(control, call) || handler_refuse_unrecorded(control, call))
                return;
        if (automatic)
                outcome = command_scale_auto(fleet, &by, now);
        else if (count >= 0 && count <= UINT32_MAX)
                outcome = command_scale(fleet, (unsigned)count, &by, now);
        answer(control, call, fleet, outcome, count);
}

#define NOTHING_CHANGED "order refused, nothing has changed: "

/* Parses the parameters of a watch except the fleets. Returns false after replying with an error. */
static bool parse_watch(struct call *call, json_t *parameters, struct watch_request *ret)
{
        const char *what;
        bool workers;

        if (!handler_parse_text(call, parameters, "wait", &what))
                return false;
        if (what && strcmp(what, "replaced") != 0 && strcmp(what, "drained") != 0) {
                handler_refuse_parameter(call, "wait");
                return false;
        }
        if (!handler_parse_flag(call, parameters, "workers", &workers))
                return false;
        if (what && !call_wants_more(call)) {
                call_reply_error(call, VARLINK_EXPECTED_MORE, json_object());
                return false;
        }
        *ret = (struct watch_request){
                .wait = call_wants_more(call),
                .drained = what && strcmp(what, "drained") == 0,
                .workers = workers,
        };
        return true;
}

/* Returns an order for each fleet, all zeroes, which the caller frees; NULL after replying that memory is
 * short. */
static struct watch_order *allocate_orders(struct call *call, const struct handler_fleets *list)
{
        struct watch_order *orders = calloc(list->n_fleets + 1, sizeof(*orders));

        if (!orders)
                call_reply(call, NULL, false);
        return orders;
}

/* The parameters of Restart. */
struct restart_request {
        struct watch_request watch;
        struct handler_fleets list;
        bool resume;
        const char *release; /* NULL: none was given */
};

/* Returns false after refusing the call. An empty text would ask for the rehearsal of a start. */
static bool parse_release(struct call *call, json_t *parameters, const char **ret)
{
        if (!handler_parse_text(call, parameters, "release", ret))
                return false;
        if (!*ret || (*ret)[0] != '\0')
                return true;
        handler_refuse_parameter(call, "release");
        return false;
}

static void restart_request_clear(struct restart_request *request)
{
        handler_fleets_free(&request->list);
}

/* Returns false after refusing the call. Clear *ret in both cases. */
static bool parse_restart(struct control *control, struct call *call, json_t *parameters,
                          struct restart_request *ret)
{
        return parse_watch(call, parameters, &ret->watch) &&
               handler_parse_flag(call, parameters, "resume", &ret->resume) &&
               parse_release(call, parameters, &ret->release) && !handler_refuse_at_shutdown(control, call) &&
               handler_parse_fleets(control, call, parameters, &ret->list) &&
               !handler_refuse_unrecorded(control, call);
}

static void restart_fleets(struct control *control, struct call *call, struct restart_request *request,
                           usec_t now)
{
        const struct handler_fleets *list = &request->list;
        _cleanup_free_ struct watch_order *orders = allocate_orders(call, list);
        const struct orderer by = handler_orderer(call);

        if (!orders)
                return;
        for (size_t i = 0; i < list->n_fleets; i++) {
                struct fleet *fleet = list->fleets[i];

                if (fleet->rollout.state == ROLLOUT_RUNNING)
                        orders[i].superseded = fleet->generation;
                if (request->resume && fleet_order(fleet) == ORDER_QUIET)
                        (void)command_start(fleet, &by, now);
                (void)command_restart(fleet, &by, now);
                orders[i].kept = fleet_order(fleet);
        }
        if (!handler_record(control, call))
                return;
        watch_reply(control, call, &request->watch, list, orders, now);
}

/* A call of Restart that waits until each of its fleets was checked for the release. */
struct awaited_release {
        struct control *control;
        struct call *call;
        json_t *parameters;       /* owned; they name each fleet */
        size_t n_checked;         /* fleets that have the release */
        struct side_start *check; /* of the next fleet; NULL: none is in progress */
};

static void awaited_release_free(struct awaited_release *awaited)
{
        release_check_cancel(awaited->check);
        json_decref(awaited->parameters);
        free(awaited);
}

static void on_release_cancelled(struct call *call _unused_, void *userdata)
{
        awaited_release_free(userdata);
}

static void on_release_checked(const struct error_report *error, void *userdata);

/* Returns the next fleet to check, NULL if there is none. A removed fleet is not restarted. */
static const struct fleet *next_fleet(struct awaited_release *awaited, const struct handler_fleets *list)
{
        while (awaited->n_checked < list->n_fleets && list->fleets[awaited->n_checked]->settings->removed)
                awaited->n_checked++;
        return awaited->n_checked < list->n_fleets ? list->fleets[awaited->n_checked] : NULL;
}

/* Begins the next check, or restarts the fleets after the last one. The parameters are parsed again, since
 * the settings may have changed meanwhile. */
static void continue_with_release(struct awaited_release *awaited)
{
        _cleanup_(restart_request_clear) struct restart_request request = {0};
        struct control *control = awaited->control;
        struct call *call = awaited->call;

        if (parse_restart(control, call, awaited->parameters, &request)) {
                const struct fleet *fleet = next_fleet(awaited, &request.list);
                int r = fleet ? release_check_begin(control->runtime, fleet, request.release,
                                                    on_release_checked, awaited, &awaited->check)
                              : 0;
                if (awaited->check) {
                        call_keep(call, on_release_cancelled, awaited);
                        return;
                }
                if (r < 0)
                        handler_refuse(call, NOTHING_CHANGED "cannot check fleet '%s' for the release: %s",
                                       fleet->settings->name, strerrordesc_np(-r));
                else
                        restart_fleets(control, call, &request, clock_now(CLOCK_MONOTONIC));
        }
        awaited_release_free(awaited);
}

static void on_release_checked(const struct error_report *error, void *userdata)
{
        struct awaited_release *awaited = userdata;
        const json_t *fleet =
                json_array_get(json_object_get(awaited->parameters, "fleets"), awaited->n_checked);

        awaited->check = NULL;
        if (!error) {
                awaited->n_checked++;
                continue_with_release(awaited);
                return;
        }
        handler_refuse_quoted(awaited->call, &error->quoted, NOTHING_CHANGED "fleet '%s': %s",
                              json_string_value(fleet), error->text);
        awaited_release_free(awaited);
}

/* Restarts the fleets after each was checked for the release. */
static void await_release(struct control *control, struct call *call, json_t *parameters,
                          const struct handler_fleets *list)
{
        struct awaited_release *awaited = calloc(1, sizeof(*awaited));
        json_t *names = json_array();
        bool all = json_array_size(json_object_get(parameters, "fleets")) == 0;
        bool failed = !awaited || !names;

        /* A removed fleet may be gone after the check. It stays in the list only if the caller named it. */
        for (size_t i = 0; i < list->n_fleets && !failed; i++)
                failed = !(all && list->fleets[i]->settings->removed) &&
                         json_array_append_new(names, varlink_text(list->fleets[i]->settings->name)) < 0;
        if (!failed) {
                awaited->control = control;
                awaited->call = call;
                awaited->parameters = json_copy(parameters);
                failed = json_object_set(awaited->parameters, "fleets", names) < 0;
        }
        json_decref(names);
        if (failed) {
                call_reply(call, NULL, false);
                if (awaited)
                        awaited_release_free(awaited);
                return;
        }
        continue_with_release(awaited);
}

void handle_restart(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        _cleanup_(restart_request_clear) struct restart_request request = {0};

        if (!parse_restart(control, call, parameters, &request))
                return;
        if (request.release)
                await_release(control, call, parameters, &request.list);
        else
                restart_fleets(control, call, &request, now);
}

/* Returns why the fleet cannot return, as in the error NotInMemory. NULL: it can, or has. */
static const char *not_in_memory_reason(const struct fleet *fleet)
{
        return fleet->rollout.returned || rollout_can_return(fleet) ? NULL
               : fleet->rollout.before == 0                         ? "no_restart"
               : !fleet->settings->preload                          ? "no_preload"
                                                                    : "template_ended";
}

/* Without names, those fleets return that can, and the others are left out. Returns false after refusing the
 * call: a named fleet cannot, or none can. */
static bool choose_returning(struct call *call, struct handler_fleets *list, struct watch_order *orders)
{
        const struct fleet *refused = NULL;
        size_t n = 0, n_left_out = 0;

        for (size_t i = 0; i < list->n_fleets; i++) {
                struct fleet *fleet = list->fleets[i];
                const char *reason = not_in_memory_reason(fleet);

                if ((fleet->settings->removed || reason) && (!refused || refused->rollout.before == 0))
                        refused = fleet;
                if (fleet->settings->removed)
                        continue;
                n_left_out += reason ? 1 : 0;
                orders[n].not_in_memory = reason;
                list->fleets[n++] = fleet;
        }
        if (refused && (!list->all || n == n_left_out)) {
                if (refused->settings->removed)
                        handler_refuse_removed(call, refused);
                else
                        call_reply_error(call, CONTROL_NOT_IN_MEMORY,
                                         watch_render_not_in_memory(refused, not_in_memory_reason(refused)));
                return false;
        }
        list->n_fleets = n;
        return true;
}

void handle_rollback(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        _cleanup_(handler_fleets_free) struct handler_fleets list = {0};
        _cleanup_free_ struct watch_order *orders = NULL;
        const struct orderer by = handler_orderer(call);
        struct watch_request request;

        if (!parse_watch(call, parameters, &request) || handler_refuse_at_shutdown(control, call) ||
            !handler_parse_fleets(control, call, parameters, &list))
                return;
        orders = allocate_orders(call, &list);
        if (!orders || !choose_returning(call, &list, orders) || handler_refuse_unrecorded(control, call))
                return;
        for (size_t i = 0; i < list.n_fleets; i++) {
                if (orders[i].not_in_memory)
                        continue;
                (void)command_rollback(list.fleets[i], &by, now);
                orders[i].returned_to = list.fleets[i]->generation;
        }
        if (!handler_record(control, call))
                return;
        watch_reply(control, call, &request, &list, orders, now);
}

void handle_follow(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        _cleanup_(handler_fleets_free) struct handler_fleets list = {0};
        _cleanup_free_ struct watch_order *orders = NULL;
        struct watch_request request;
        bool rollback;

        if (!parse_watch(call, parameters, &request) ||
            !handler_parse_flag(call, parameters, "rollback", &rollback) ||
            !handler_parse_fleets(control, call, parameters, &list))
                return;
        orders = allocate_orders(call, &list);
        if (!orders)
                return;
        for (size_t i = 0; rollback && i < list.n_fleets; i++)
                orders[i].returned_to = list.fleets[i]->generation;
        watch_reply(control, call, &request, &list, orders, now);
}

void handle_abort(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        _cleanup_(handler_fleets_free) struct handler_fleets list = {0};
        _cleanup_json_ json_t *aborted = json_array(), *acknowledged = json_array();
        const struct orderer by = handler_orderer(call);
        bool failed = false;

        if (!handler_parse_fleets(control, call, parameters, &list))
                return;
        for (size_t i = 0; i < list.n_fleets; i++) {
                struct fleet *fleet = list.fleets[i];
                enum rollout_state state = fleet->rollout.state;

                if (state == ROLLOUT_RUNNING || state == ROLLOUT_HALTED)
                        failed |= json_array_append_new(state == ROLLOUT_RUNNING ? aborted : acknowledged,
                                                        varlink_text(fleet->settings->name)) < 0;
                command_abort(fleet, &by, now);
        }
        if (!handler_record(control, call))
                return;
        call_reply(call,
                   failed ? NULL : json_pack("{s:O, s:O}", "aborted", aborted, "acknowledged", acknowledged),
                   false);
}
