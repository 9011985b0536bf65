/* SPDX-License-Identifier: MIT */
/* Handles Quiet, Stop, Start and Scale. */
#include "daemon/api/handler.h"
#include "decide/command.h"
#include "model/counts.h"
#include "model/fleet.h"
#include "model/worker_facts.h"
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
        server_reply(call,
                     json_pack("{s:b, s:b, s:b, s:b}", "leaving", (int)(outcome == COMMAND_LEAVING), "exits",
                               (int)exits, "waits", (int)(outcome == COMMAND_WAITS), "kept",
                               (int)(outcome == COMMAND_KEPT)),
                     false);
}

void handle_quiet(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        const struct world *world = control->host.world;
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
        struct worker *worker = name ? world_worker(control->host.world, name) : NULL;
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
                server_reply(call, json_pack("{s:n, s:n, s:n, s:n}", "leaving", "exits", "waits", "kept"),
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
