/* SPDX-License-Identifier: MIT */
/* The operator's commands: each records an order in the model, and the planner acts on it at the next plan.
 */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct fleet;
struct worker;
struct world;

enum command_outcome {
        COMMAND_DONE,    /* recorded, or in force already */
        COMMAND_STOPPED, /* restart: the fleet is stopped or removed, and stays so */
        COMMAND_RANGE,   /* scale: the count is not within fleet_scale_min() .. fleet_max_processes() */
        COMMAND_LEAVING, /* quiet: the worker is quiet or stopping already; the fleet is stopped, and stays so
                          */
        COMMAND_REMOVED, /* start, scale: the fleet is no longer configured */
        COMMAND_FIXED,   /* scale: its count does not follow its queues */
};

enum command_outcome command_restart(struct world *world, struct fleet *fleet, usec_t now);
enum command_outcome command_abort(struct world *world, struct fleet *fleet, usec_t now);
enum command_outcome command_quiet_fleet(struct world *world, struct fleet *fleet, usec_t now);
enum command_outcome command_quiet_worker(struct world *world, struct worker *worker, usec_t now);
enum command_outcome command_stop(struct world *world, struct fleet *fleet, bool force, usec_t now);
enum command_outcome command_start(struct world *world, struct fleet *fleet, usec_t now);
enum command_outcome command_scale(struct world *world, struct fleet *fleet, unsigned count, usec_t now);
/* Gives the count back to scaling, which goes on from the one in force. */
enum command_outcome command_scale_auto(struct world *world, struct fleet *fleet, usec_t now);

/* sqmgr itself is to end: drains all fleets, and at shutdown_timeout stops the rest. Asked again: stops all
 * now. */
void command_shutdown(struct world *world, usec_t now);
