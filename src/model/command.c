/* SPDX-License-Identifier: MIT */
/* The operator's commands: each records an order in the model. */
#include "model/command.h"
#include "model/backoff.h"
#include "model/rollout.h"

enum command_outcome command_restart(struct world *world _unused_, struct fleet *fleet, usec_t now)
{
        if (fleet_order(fleet) == ORDER_STOP)
                return COMMAND_STOPPED;
        fleet->order = ORDER_RUN;
        rollout_start(fleet, now);
        return COMMAND_DONE;
}

enum command_outcome command_abort(struct world *world _unused_, struct fleet *fleet, usec_t now _unused_)
{
        rollout_abort(fleet, "the operator asked for it");
        return COMMAND_DONE;
}

static void order_fleet(struct world *world, struct fleet *fleet, enum fleet_order order, const char *what)
{
        if (order != ORDER_RUN)
                rollout_abort(fleet,
                              order == ORDER_QUIET ? "the fleet was quieted" : "the fleet was stopped");
        fleet->order = order;
        fleet->force = false;
        world_event(world, EVENT_ORDER, fleet, NULL, "fleet '%s': %s, the operator asked for it",
                    fleet->settings->name, what);
}

enum command_outcome command_quiet_fleet(struct world *world, struct fleet *fleet, usec_t now _unused_)
{
        /* Else the restart that ends the quiet of a deployment would bring it back. */
        if (fleet_order(fleet) == ORDER_STOP)
                return COMMAND_LEAVING;
        order_fleet(world, fleet, ORDER_QUIET, "quieted");
        return COMMAND_DONE;
}

enum command_outcome command_quiet_worker(struct world *world, struct worker *worker, usec_t now _unused_)
{
        if (worker->state > WORKER_ACTIVE)
                return COMMAND_LEAVING;
        worker->quiet_ordered = true;
        world_event(world, EVENT_ORDER, worker->fleet, worker, "%s: quiet, the operator asked for it",
                    WORKER_ID(worker));
        return COMMAND_DONE;
}

enum command_outcome command_stop(struct world *world, struct fleet *fleet, bool force, usec_t now _unused_)
{
        order_fleet(world, fleet, ORDER_STOP, force ? "stopped by force" : "stopped");
        fleet->force = force;
        return COMMAND_DONE;
}

enum command_outcome command_start(struct world *world, struct fleet *fleet, usec_t now _unused_)
{
        if (fleet->settings->removed)
                return COMMAND_REMOVED;
        backoff_reset(&fleet->crash);
        order_fleet(world, fleet, ORDER_RUN, "started");
        return COMMAND_DONE;
}

enum command_outcome command_scale(struct world *world, struct fleet *fleet, unsigned count,
                                   usec_t now _unused_)
{
        if (fleet->settings->removed)
                return COMMAND_REMOVED;
        if (count < 1 || count > fleet_scale_max(fleet))
                return COMMAND_RANGE;
        fleet->scale = count;
        world_event(world, EVENT_ORDER, fleet, NULL, "fleet '%s': scaled to %u, the operator asked for it",
                    fleet->settings->name, count);
        return COMMAND_DONE;
}

void command_shutdown(struct world *world, usec_t now)
{
        if (world->shutting_down) {
                world->shutdown_now = true;
                return;
        }
        world->shutting_down = true;
        world->shutdown_at = now;
}
