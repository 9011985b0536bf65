/* SPDX-License-Identifier: MIT */
/* Deadlines of workers: when one is given up, asked to exit although jobs run, or killed. */
#pragma once

#include "model/fleet.h"

/* Returns when every worker must be stopped by the operator's order: `stop --force`, or the end of a
 * shutdown. 0: at once. USEC_INFINITY: no such order. */
usec_t fleet_forced_at(const struct fleet *fleet);

/* Returns the same for one worker, which an order may force alone. */
usec_t worker_forced_at(const struct worker *worker);

/* The time at which a draining worker is asked to exit although its jobs still run. */
struct cut_off {
        usec_t at;          /* USEC_INFINITY: no limit; 0: at once */
        usec_t allowed;     /* the time that the worker gets to drain */
        enum cut_word word; /* the setting that limits it; CUT_ORDER: by order, at once, or no limit */
};

struct cut_off worker_cut_off(const struct worker *worker);

/* Returns when the worker was sent its stop signal. If stop_timeout counts from quieting, that is the time of
 * quieting. */
usec_t worker_stop_sent_at(const struct worker *worker);

/* Returns when a process of the fleet that has not booted is given up. Only time with Redis up and without
 * doubt about time counts. */
usec_t boot_deadline(const struct fleet *fleet, usec_t begun_at);
usec_t worker_boot_deadline(const struct worker *worker);
/* Returns true if a worker that has shown no boot by then has failed to boot: workers of its command show
 * their boot, or it does nothing at all. */
bool worker_boot_has_failed(const struct worker *worker);

/* Call if no process of the worker has a status file, not even one that its shim has begun. Returns true if
 * the worker runs without the shim: see worker_process.shimless. While a record is expected, as others of the
 * fleet write some, the worker is kept unseen instead. */
bool worker_lacks_shim(const struct worker *worker, usec_t now);

/* Returns when the stop signal of a remote worker is sent again, if it has not exited by then; USEC_INFINITY:
 * not at all. The signal may be lost on its way through the server, and a second one ends no jobs. */
usec_t worker_repeat_stop_at(const struct worker *worker);

/* Returns when a worker that was asked to exit is killed: after stop_timeout; a remote one gets the signal
 * with a heartbeat, which is as much later as two of them take. Only time without doubt and
 * with Redis up counts, when the worker could have put its jobs back. During a shutdown or forced stop, the
 * time without Redis counts too. */
usec_t worker_kill_at(const struct worker *worker);
