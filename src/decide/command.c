/* SPDX-License-Identifier: MIT */
/* The operator's commands: each records an order in the model. */
#include "decide/command.h"
#include "model/backoff.h"
#include "model/counts.h"
#include "model/names.h"
#include "model/rollout.h"
#include "model/world.h"
#include <stdio.h>

static void put_order(struct world *world, struct fleet *fleet, enum fleet_order order, usec_t now)
{
        fleet->order = order;
        fleet->order_at = now;
        fleet->order_by = world->by ? *world->by : (struct orderer){0};
}

enum command_outcome command_restart(struct world *world, struct fleet *fleet, usec_t now)
{
        if (fleet_order(fleet) == ORDER_STOP)
                return COMMAND_STOPPED;
        put_order(world, fleet, ORDER_RUN, now);
        rollout_start(fleet, now);
        return COMMAND_DONE;
}

enum command_outcome command_abort(struct world *world, struct fleet *fleet, usec_t now _unused_)
{
        char who[ORDERER_TEXT_MAX], why[ORDERER_TEXT_MAX + 32];

        snprintf(why, sizeof(why), "%s asked for it", orderer_text(world->by, who));
        rollout_abort(fleet, why);
        rollout_acknowledge(fleet, who);
        return COMMAND_DONE;
}

static void order_fleet(struct world *world, struct fleet *fleet, enum fleet_order order, const char *what,
                        usec_t now)
{
        char who[ORDERER_TEXT_MAX];

        orderer_text(world->by, who);
        if (order != ORDER_RUN)
                rollout_abort(fleet,
                              order == ORDER_QUIET ? "the fleet was quieted" : "the fleet was stopped");
        /* Of its workers none will be left. */
        if (order == ORDER_STOP)
                rollout_acknowledge(fleet, who);
        /* Who stopped it first is who did. */
        if (fleet->order != order)
                put_order(world, fleet, order, now);
        fleet->force = false;
        world_event(world, EVENT_ORDER, fleet, NULL, "fleet '%s': %s by %s", fleet->settings->name, what,
                    who);
}

enum command_outcome command_quiet_fleet(struct world *world, struct fleet *fleet, usec_t now)
{
        /* Else the restart that ends the quiet of a deployment would bring it back. */
        if (fleet_order(fleet) == ORDER_STOP)
                return COMMAND_LEAVING;
        order_fleet(world, fleet, ORDER_QUIET, "quieted", now);
        return COMMAND_DONE;
}

enum command_outcome command_quiet_worker(struct world *world, struct worker *worker, usec_t now _unused_)
{
        char who[ORDERER_TEXT_MAX];

        if (worker->state > WORKER_ACTIVE)
                return COMMAND_LEAVING;
        worker->orders.quiet = true;
        world_event(world, EVENT_ORDER, worker->fleet, worker, "%s: quieted by %s", WORKER_ID(worker),
                    orderer_text(world->by, who));
        return COMMAND_DONE;
}

enum command_outcome command_stop(struct world *world, struct fleet *fleet, bool force, usec_t now)
{
        order_fleet(world, fleet, ORDER_STOP, force ? "stopped at once" : "stopped", now);
        fleet->force = force;
        return COMMAND_DONE;
}

enum command_outcome command_start(struct world *world, struct fleet *fleet, usec_t now)
{
        if (fleet->settings->removed)
                return COMMAND_REMOVED;
        backoff_reset(&fleet->crash);
        order_fleet(world, fleet, ORDER_RUN, "started", now);
        return COMMAND_DONE;
}

enum command_outcome command_scale(struct world *world, struct fleet *fleet, unsigned count, usec_t now)
{
        char who[ORDERER_TEXT_MAX];

        if (fleet->settings->removed)
                return COMMAND_REMOVED;
        if (count < fleet_scale_min(fleet) || count > fleet_max_processes(fleet))
                return COMMAND_RANGE;
        fleet->scale = count;
        fleet->scale_at = now;
        fleet->scale_by = world->by ? *world->by : (struct orderer){0};
        world_event(world, EVENT_ORDER, fleet, NULL, "fleet '%s': scaled to %u by %s", fleet->settings->name,
                    count, orderer_text(world->by, who));
        return COMMAND_DONE;
}

enum command_outcome command_scale_auto(struct world *world, struct fleet *fleet, usec_t now _unused_)
{
        char who[ORDERER_TEXT_MAX];

        if (fleet->settings->removed)
                return COMMAND_REMOVED;
        if (!fleet_scales(fleet))
                return COMMAND_FIXED;
        fleet->automatic_count = fleet_count_in_force(fleet);
        fleet->scale = 0;
        world_event(world, EVENT_ORDER, fleet, NULL, "fleet '%s': its count follows its queues again, by %s",
                    fleet->settings->name, orderer_text(world->by, who));
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
