/* SPDX-License-Identifier: MIT */
/* What follows from the state of a worker alone. */
#pragma once

#include "model/fleet.h"

/* The process that beats, where that is known, else the one that was started. */
static inline pid_t worker_pid(const struct worker *worker)
{
        return worker->process.heartbeat_pid != 0 ? worker->process.heartbeat_pid : worker->process.pid;
}

static inline bool worker_outdated(const struct worker *worker)
{
        return worker->generation < worker->fleet->generation;
}

/* It has beaten, where that is more than that it runs. */
static inline bool worker_sends_heartbeats(const struct worker *worker)
{
        return worker->heartbeat.seen && fleet_settings_write_heartbeats(worker->fleet->settings);
}

/* The worker is quieted or was asked to exit. */
static inline bool worker_leaves(const struct worker *worker)
{
        return worker->state == WORKER_QUIET || worker->state == WORKER_STOPPING;
}

/* Told to leave, it lives on though the process that beat has ended, or none ever did: what is left of it may
 * be a wrapper, or run jobs. */
static inline bool worker_is_remainder(const struct worker *worker)
{
        return worker_leaves(worker) && worker->process.heartbeat_pid == 0;
}

/* To quiet it is to stop it: it gets its stop signal once. */
static inline bool worker_quiet_is_stop(const struct worker *worker)
{
        return worker->fleet->settings->traits->quiet_is_stop || worker->orders.quiet_uncaught;
}

/* It was told to exit, by being quieted where quiet is stop: that it does is no crash. */
static inline bool worker_is_asked_to_exit(const struct worker *worker)
{
        return worker->state == WORKER_STOPPING ||
               (worker->state == WORKER_QUIET && worker_quiet_is_stop(worker));
}

/* The same of one that finishes its jobs first: the process that has its stop signal lives, and not only a
 * wrapper around it. */
static inline bool worker_drains_to_exit(const struct worker *worker)
{
        return worker->state == WORKER_QUIET && worker_is_asked_to_exit(worker) &&
               worker->process.heartbeat_pid != 0;
}

/* In the state active, but it hangs: it takes a place and is none of those that do the work. */
static inline bool worker_hangs(const struct worker *worker)
{
        return worker->state == WORKER_ACTIVE && worker->heartbeat.hung;
}
