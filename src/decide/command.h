/* SPDX-License-Identifier: MIT */
/* The operator's commands: each records an order in the model, and the planner acts on it at the next plan.
 */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct fleet;
struct orderer;
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

/* by: who orders, as events and the status show it; NULL: not known. */
enum command_outcome command_restart(struct fleet *fleet, const struct orderer *by, usec_t now);
enum command_outcome command_abort(struct fleet *fleet, const struct orderer *by, usec_t now);
/* Ends a restart that runs for a reason that is no order: why. */
void command_give_up(struct fleet *fleet, const char *why);
enum command_outcome command_quiet_fleet(struct fleet *fleet, const struct orderer *by, usec_t now);
enum command_outcome command_quiet_worker(struct worker *worker, const struct orderer *by, usec_t now);
enum command_outcome command_stop(struct fleet *fleet, bool force, const struct orderer *by, usec_t now);
enum command_outcome command_start(struct fleet *fleet, const struct orderer *by, usec_t now);
enum command_outcome command_scale(struct fleet *fleet, unsigned count, const struct orderer *by, usec_t now);
/* Gives the count back to scaling, which goes on from the one in force. */
enum command_outcome command_scale_auto(struct fleet *fleet, const struct orderer *by, usec_t now);

/* sqmgr itself is to end: drains all fleets, and at shutdown_timeout stops the rest. Asked again: stops all
 * now. */
void command_shutdown(struct world *world, usec_t now);
