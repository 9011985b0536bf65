/* SPDX-License-Identifier: MIT */
/* Facts that follow from the state of a worker alone. */
#pragma once

#include "model/fleet.h"

/* Returns the process that sends heartbeats if known, else the one that was started. */
static inline pid_t worker_pid(const struct worker *worker)
{
        return worker->process.heartbeat_pid != 0 ? worker->process.heartbeat_pid : worker->process.pid;
}

static inline bool worker_outdated(const struct worker *worker)
{
        return worker->generation != worker->fleet->generation;
}

/* The running restart replaces the worker, which is of a release whose own restart did not end well. */
static inline bool worker_is_of_failed_try(const struct worker *worker)
{
        const struct rollout *rollout = &worker->fleet->rollout;

        return rollout->state == ROLLOUT_RUNNING && worker_outdated(worker) && rollout->before != 0 &&
               worker->generation > rollout->before;
}

/* The fleet has returned to a generation before that of the worker. */
static inline bool worker_is_given_up(const struct worker *worker)
{
        return worker->fleet->rollout.returned && worker->generation > worker->fleet->generation;
}

/* Returns true once a heartbeat was received; always false if the worker writes no heartbeats. */
static inline bool worker_sends_heartbeats(const struct worker *worker)
{
        return worker->heartbeat.seen && fleet_settings_write_heartbeats(worker->fleet->settings) &&
               !worker->process.shimless;
}

/* Returns true if the number of the worker's running jobs is known. */
static inline bool worker_shows_busy(const struct worker *worker)
{
        return worker->fleet->settings->traits->reports_busy && !worker->process.shimless;
}

/* The worker is quieted or was asked to exit. */
static inline bool worker_is_retiring(const struct worker *worker)
{
        return worker->state == WORKER_QUIET || worker->state == WORKER_STOPPING;
}

/* Returns true if the worker is quieted or stopping without a process that sends heartbeats: that one has
 * ended or never existed. The leftover process may be a wrapper or run jobs. */
static inline bool worker_is_remainder(const struct worker *worker)
{
        return worker_is_retiring(worker) && worker->process.heartbeat_pid == 0;
}

/* Returns true if quieting stops the worker: it gets its stop signal, once. */
static inline bool worker_quiet_is_stop(const struct worker *worker)
{
        return worker->fleet->settings->traits->quiet_is_stop || worker->orders.quiet_uncaught ||
               worker->process.shimless;
}

/* Returns true if the worker was asked to exit, also by quieting where that stops it. Its exit is then no
 * crash. */
static inline bool worker_is_asked_to_exit(const struct worker *worker)
{
        return worker->state == WORKER_STOPPING ||
               (worker->state == WORKER_QUIET && worker_quiet_is_stop(worker));
}

/* Returns true if the worker was asked to exit and finishes its jobs first. The process with the stop signal
 * must live, and not only a wrapper around it. */
static inline bool worker_drains_to_exit(const struct worker *worker)
{
        return worker->state == WORKER_QUIET && worker_is_asked_to_exit(worker) &&
               worker->process.heartbeat_pid != 0;
}

/* The worker may run jobs, and nothing shows whether it does. The time for its boot has passed. */
static inline bool worker_is_unseen(const struct worker *worker)
{
        return worker->state == WORKER_STARTING && worker->process.unseen;
}

/* Returns true if the worker is active but hangs: it occupies a place and does no work. */
static inline bool worker_hangs(const struct worker *worker)
{
        return worker->state == WORKER_ACTIVE && worker->heartbeat.hung;
}
