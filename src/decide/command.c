/* SPDX-License-Identifier: MIT */
/* Operator commands: each records an order in the model. */
#include "decide/command.h"
#include "model/counts.h"
#include "model/idle_proof.h"
#include "model/rollout.h"
#include "model/world.h"

static void put_order(struct fleet *fleet, enum fleet_order order, const struct orderer *by, usec_t now)
{
        fleet->order = order;
        fleet->order_at = now;
        fleet->order_by = by ? *by : (struct orderer){0};
}

enum command_outcome command_restart(struct fleet *fleet, const struct orderer *by, usec_t now)
{
        if (fleet_order(fleet) == ORDER_STOP)
                return COMMAND_STOPPED;
        /* An operator has quieted the fleet for maintenance: only an explicit order to start ends that. */
        if (fleet_order(fleet) == ORDER_QUIET)
                return COMMAND_QUIETED;
        put_order(fleet, ORDER_RUN, by, now);
        /* A single worker proves that the release boots; the fleet sleeps again once it has been idle. */
        if (fleet_sleeps(fleet))
                fleet->automatic_count = 1;
        rollout_start(fleet, by, now);
        return COMMAND_DONE;
}

enum command_outcome command_abort(struct fleet *fleet, const struct orderer *by, usec_t now _unused_)
{
        char why[ORDERER_TEXT_MAX + 32];

        snprintf(why, sizeof(why), "requested by %s", ORDERER_TEXT(by));
        rollout_abort(fleet, why, by);
        rollout_acknowledge(fleet, by);
        return COMMAND_DONE;
}

static void order_fleet(struct fleet *fleet, enum fleet_order order, const char *what,
                        const struct orderer *by, usec_t now)
{
        if (order != ORDER_RUN)
                rollout_abort(fleet, order == ORDER_QUIET ? "the fleet was quieted" : "the fleet was stopped",
                              by);
        /* A stopped fleet keeps no worker. */
        if (order == ORDER_STOP)
                rollout_acknowledge(fleet, by);
        /* A repeated order keeps the time and name of the first. */
        if (fleet->order != order)
                put_order(fleet, order, by, now);
        fleet->force = false;
        event_by(by, fleet_event(fleet, EVENT_ORDER, ": %s by %s", what, ORDERER_TEXT(by)));
}

enum command_outcome command_rollback(struct fleet *fleet, const struct orderer *by, usec_t now _unused_)
{
        if (fleet->settings->removed)
                return COMMAND_REMOVED;
        if (fleet->rollout.before == 0 || fleet->rollout.returned)
                return COMMAND_NOTHING;
        if (!rollout_can_return(fleet))
                return COMMAND_NOT_IN_MEMORY;
        rollout_return(fleet, by);
        return COMMAND_DONE;
}

enum command_outcome command_quiet_fleet(struct fleet *fleet, const struct orderer *by, usec_t now)
{
        /* A stopped fleet keeps its order. Were it replaced by `quiet`, the `restart --resume` at the end of
         * a deployment would start the fleet. */
        if (fleet_order(fleet) == ORDER_STOP)
                return COMMAND_LEAVING;
        order_fleet(fleet, ORDER_QUIET, "quieted", by, now);
        return COMMAND_DONE;
}

static enum command_outcome order_worker(struct worker *worker, const char *what, const struct orderer *by)
{
        worker->orders.quiet = true;
        event_by(by, world_event(worker->fleet->world, EVENT_ORDER, worker->fleet, worker, "%s: %s by %s",
                                 WORKER_ID(worker), what, ORDERER_TEXT(by)));
        if ((worker->process.booted || worker->process.unseen) && worker->state == WORKER_STARTING)
                return worker->process.elsewhere && worker_title_can_prove(worker) ? COMMAND_DONE
                                                                                   : COMMAND_KEPT;
        return worker->state == WORKER_STARTING || !worker->fleet->redis_up || worker->heartbeat.hung
                       ? COMMAND_WAITS
                       : COMMAND_DONE;
}

enum command_outcome command_quiet_worker(struct worker *worker, const struct orderer *by,
                                          usec_t now _unused_)
{
        return worker->state > WORKER_ACTIVE ? COMMAND_LEAVING : order_worker(worker, "quieted", by);
}

enum command_outcome command_stop_worker(struct worker *worker, bool force, const struct orderer *by,
                                         usec_t now _unused_)
{
        if (!force || worker->state == WORKER_GONE)
                return worker->state > WORKER_ACTIVE ? COMMAND_LEAVING : order_worker(worker, "stopped", by);
        worker->orders.forced = true;
        (void)order_worker(worker, "stopped at once", by);
        return COMMAND_DONE;
}

enum command_outcome command_stop(struct fleet *fleet, bool force, const struct orderer *by, usec_t now)
{
        order_fleet(fleet, ORDER_STOP, force ? "stopped at once" : "stopped", by, now);
        fleet->force = force;
        return COMMAND_DONE;
}

enum command_outcome command_start(struct fleet *fleet, const struct orderer *by, usec_t now)
{
        if (fleet->settings->removed)
                return COMMAND_REMOVED;
        backoff_reset(&fleet->crash);
        order_fleet(fleet, ORDER_RUN, "started", by, now);
        return COMMAND_DONE;
}

enum command_outcome command_scale(struct fleet *fleet, unsigned count, const struct orderer *by, usec_t now)
{
        if (fleet->settings->removed)
                return COMMAND_REMOVED;
        if (count < fleet_scale_min(fleet) || count > fleet_max_processes(fleet))
                return COMMAND_RANGE;
        fleet->scale = count;
        fleet->scale_at = now;
        fleet->scale_by = by ? *by : (struct orderer){0};
        event_by(by, fleet_event(fleet, EVENT_ORDER, ": scaled to %u by %s", count, ORDERER_TEXT(by)));
        return COMMAND_DONE;
}

enum command_outcome command_scale_auto(struct fleet *fleet, const struct orderer *by, usec_t now _unused_)
{
        if (fleet->settings->removed)
                return COMMAND_REMOVED;
        if (!fleet_scales(fleet))
                return COMMAND_FIXED;
        fleet->automatic_count = fleet_current_count(fleet);
        fleet->scale = 0;
        event_by(by, fleet_event(fleet, EVENT_ORDER, ": autoscaling resumed by %s", ORDERER_TEXT(by)));
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
