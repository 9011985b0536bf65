/* SPDX-License-Identifier: MIT */
/* Operator commands. Each records an order in the model; the planner acts on the order at the next plan. */
#pragma once

#include "base/macro.h"

struct fleet;
struct orderer;
struct worker;
struct world;

enum command_outcome {
        COMMAND_DONE,    /* recorded, or already the current state */
        COMMAND_STOPPED, /* restart: the fleet is stopped or removed, and remains so */
        COMMAND_QUIETED, /* restart: the fleet is quieted, and remains so until command_start() */
        COMMAND_RANGE,   /* scale: the count is not within fleet_scale_min() .. fleet_max_processes() */
        COMMAND_WAITS,   /* quiet, stop of a worker: recorded; carried out once its state is known */
        COMMAND_KEPT,    /* quiet, stop of a worker: recorded, but not carried out as long as its heartbeat is
                            elsewhere and its job threads are not counted */
        COMMAND_LEAVING, /* quiet: the worker is already quiet or stopping, or the fleet is stopped; nothing
                            changes */
        COMMAND_REMOVED, /* start, scale: the fleet is no longer configured */
        COMMAND_NOTHING, /* rollback: there is no generation before, or the fleet has returned to it */
        COMMAND_NOT_IN_MEMORY, /* rollback: the generation before is not in memory */
        COMMAND_FIXED,         /* scale auto: autoscaling does not set the count */
};

/* by: the operator who gives the order, shown in events and status; NULL: not known. No command does I/O; all
 * take effect with the next plan. */
enum command_outcome command_restart(struct fleet *fleet, const struct orderer *by, usec_t now);
enum command_outcome command_abort(struct fleet *fleet, const struct orderer *by, usec_t now);
/* Returns to the generation before the last restart, whose template is still there. */
enum command_outcome command_rollback(struct fleet *fleet, const struct orderer *by, usec_t now);
enum command_outcome command_quiet_fleet(struct fleet *fleet, const struct orderer *by, usec_t now);
enum command_outcome command_quiet_worker(struct worker *worker, const struct orderer *by, usec_t now);
/* Like command_quiet_worker(): the worker exits once it is idle. force: at once. */
enum command_outcome command_stop_worker(struct worker *worker, bool force, const struct orderer *by,
                                         usec_t now);
enum command_outcome command_stop(struct fleet *fleet, bool force, const struct orderer *by, usec_t now);
enum command_outcome command_start(struct fleet *fleet, const struct orderer *by, usec_t now);
enum command_outcome command_scale(struct fleet *fleet, unsigned count, const struct orderer *by, usec_t now);
/* Lets autoscaling choose the count again, starting from the current one. */
enum command_outcome command_scale_auto(struct fleet *fleet, const struct orderer *by, usec_t now);

/* Ends sqmgr: drains all fleets, and stops the remaining workers at shutdown_timeout. A second call stops all
 * workers now. */
void command_shutdown(struct world *world, usec_t now);
