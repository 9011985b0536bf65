/* SPDX-License-Identifier: MIT */
/* Counts derived of a fleet: how many workers it has in each state, and how many it is to have. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct fleet;

/* Counts that the model derives; `ready` and `fresh` mean at `now`. */
struct fleet_counts {
        unsigned live, starting, active, quiet, stopping;
        unsigned hung;     /* would be active, did they not hang */
        unsigned ready;    /* active for ready_after, its beat fresh */
        unsigned outdated; /* starting or active, of an older generation */
        unsigned draining; /* quiet or stopping, of an older generation */
        unsigned busy;     /* jobs that are running, at the last beats */
        uint64_t memory_bytes;
};

struct fleet_counts fleet_count(const struct fleet *fleet, usec_t now);

/* How many of the workers that a restart set out to replace have been: quiet, stopping or gone. */
unsigned fleet_replaced(const struct fleet *fleet, usec_t now);

/* How many workers should take jobs when all is well: 0 once quieted, stopped or shutting down. */
unsigned fleet_target(const struct fleet *fleet);

/* The count in force, whatever the order: the operator's, or the configured one. */
unsigned fleet_count_in_force(const struct fleet *fleet);

/* The highest count, too, that the operator may ask for. */
unsigned fleet_max_processes(const struct fleet *fleet);

/* The lowest one: 0 only takes one back that is switched off by its settings. */
unsigned fleet_scale_min(const struct fleet *fleet);

/* The operator's count is in force, and is another than the configured one, or than scaling's. */
bool fleet_is_scaled(const struct fleet *fleet);

/* restart_surge as a number of workers. */
unsigned fleet_surge(const struct fleet *fleet);
