/* SPDX-License-Identifier: MIT */
/* The plan of one fleet while it is made, and its first part: which workers are started, and which templates
 * are loaded and ended. */
#pragma once

#include "base/macro.h"
#include "decide/action.h"

/* Working data of one fleet's plan. */
struct round {
        struct plan *plan;
        struct fleet *fleet;
        usec_t now;
        unsigned target, max, surge;
        unsigned live, starting;
        unsigned active; /* with workers whose heartbeat is elsewhere: by their title they accept jobs */
        unsigned elsewhere;
        unsigned ready, title_ready;
        unsigned hung;              /* would be active if they did not hang */
        unsigned starting_outdated; /* starting workers of the release that a restart replaces: they may never
                                       send a heartbeat */
        unsigned keepers;           /* starting or active, and not to leave */
        unsigned draining_for_restart;
        uint64_t expected_bytes; /* of a worker; valid if expected_known */
        bool expected_known;
        bool starts;     /* the plan starts a worker */
        bool forks;      /* a fork is or was requested */
        bool hang_ended; /* a hung worker is being stopped, to see whether another one sends heartbeats */
        bool fails;      /* the plan gives up a new worker */
        int error;
};

/* Wakes the loop at this time, unless it has passed. */
static inline void round_wake(struct round *round, usec_t at)
{
        if (at > round->now)
                round->plan->wake_at = MIN(round->plan->wake_at, at);
}
/* Adds an action; sets round->error if memory is short. */
void round_add(struct round *round, struct action action);

/* Rule 1: starts workers. Sets what the fleet waits for. */
void plan_starts(struct round *round);
/* Loads, ends and kills templates. Call after plan_starts(). */
void plan_templates(struct round *round);
