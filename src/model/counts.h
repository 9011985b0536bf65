/* SPDX-License-Identifier: MIT */
/* Counts of a fleet: how many workers are in each state, and how many it should have. */
#pragma once

#include "base/macro.h"

struct fleet;

/* Counts derived from the model; `ready` depends on the time. */
struct fleet_counts {
        unsigned live, starting, active, quiet, stopping;
        unsigned elsewhere; /* of the starting ones: have booted and accept jobs by their title, but their
                             * heartbeat is elsewhere */
        unsigned hung;      /* active by their state, but hung: not counted in active */
        unsigned ready;     /* active for ready_after, with a fresh heartbeat */
        unsigned outdated; /* starting or active, not hung or unseen, and of another generation than the fleet
                            */
        unsigned unseen;   /* worker_is_unseen(): counted in starting */
        unsigned draining; /* quiet or stopping, and of another generation than the fleet */
        unsigned busy;     /* running jobs, as of the last heartbeats */
        uint64_t memory_bytes;
};

struct fleet_counts fleet_count(const struct fleet *fleet, usec_t now);

/* Returns how many of the workers to replace a restart has replaced: they are quiet, stopping or gone. */
unsigned fleet_replaced(const struct fleet *fleet, usec_t now);

/* Returns how many workers should be active in a healthy fleet; 0 while quieted, stopped or shutting down. */
unsigned fleet_target(const struct fleet *fleet);

/* Returns the current count: the operator's, autoscaling's or the configured one. Ignores quiet and stop
 * orders. */
unsigned fleet_current_count(const struct fleet *fleet);

/* Returns true if autoscaling has ended the last worker because no job waits: the next job starts one. */
bool fleet_sleeps(const struct fleet *fleet);

/* Returns true if the fleet has workers, or sleeps: no order keeps it from running jobs. */
bool fleet_serves(const struct fleet *fleet);

/* Returns the maximum number of live workers; also the highest count that an operator may order. */
unsigned fleet_max_processes(const struct fleet *fleet);

/* Returns the lowest count that an operator may order. 0 is allowed only for a fleet whose fixed count is 0.
 */
unsigned fleet_scale_min(const struct fleet *fleet);

/* Returns true if the operator's count is current and differs from the configured one. With autoscaling, any
 * operator's count is a difference. */
bool fleet_is_scaled(const struct fleet *fleet);

/* Returns restart_surge as a number of workers. */
unsigned fleet_surge(const struct fleet *fleet);

/* For plans: returns true if a restart has all new workers that it may have for now, without those that
 * leave. An old worker that dies meanwhile is replaced by the old code if its template is there.
 */
bool fleet_is_limited(const struct fleet *fleet);

/* Returns the number of starting and active workers of generations that the fleet has returned from, without
 * hung ones. */
unsigned fleet_given_up(const struct fleet *fleet);

/* The meaning of the failed starts in a row for a fleet. */
enum crash_state {
        CRASH_NONE,       /* no failed start */
        CRASH_FAILING,    /* workers are missing, or it is not known yet whether a new one stays alive */
        CRASH_RECOVERING, /* complete, with a worker started since the last failure: it must stay alive for a
                             while */
        CRASH_SETTLED,    /* complete, and no start is pending */
        _CRASH_STATE_MAX,
};

enum crash_state fleet_crash_state(const struct fleet *fleet, usec_t now);

/* Returns when the row of failed starts ends because a worker started since then has lived long enough;
 * USEC_INFINITY: there is no such worker. */
usec_t fleet_recovered_at(const struct fleet *fleet);

/* Returns the time until which the next start is delayed by the backoff; 0: no start is delayed. */
usec_t fleet_next_start_at(const struct fleet *fleet, usec_t now);

const char *crash_state_name(enum crash_state value);
