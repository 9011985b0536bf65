/* SPDX-License-Identifier: MIT */
/* When a worker is given up, asked to exit though jobs run, or killed. */
#pragma once

#include "model/fleet.h"

/* By the operator's own word every worker is to end from then on, whatever it does: by `stop --force`, and at
 * the end of a shutdown. USEC_INFINITY: there is no such word. */
usec_t fleet_forced_at(const struct fleet *fleet);

/* A worker that drains is told to exit then, its jobs notwithstanding: by drain_timeout, at a shutdown, or
 * by force. */
struct cut_off {
        usec_t at;          /* USEC_INFINITY: it is given the time that its jobs take; 0: at once */
        usec_t allowed;     /* how long it is given */
        enum cut_word word; /* by which setting; CUT_ORDER: by order, at once, or not at all */
};

struct cut_off worker_cut_off(const struct worker *worker);

/* When it got its stop signal: as it was quieted, where stop_timeout counts from then on. */
usec_t worker_stop_sent_at(const struct worker *worker);

/* When a worker that has not beaten is to be given up; counts only time with Redis up and undoubted. */
usec_t worker_boot_deadline(const struct worker *worker);

/* When one that was told to exit has ignored that for stop_timeout of undoubted time with Redis up, in which
 * it could have put its jobs back. At shutdown, and by force, Redis is not waited for. */
usec_t worker_kill_at(const struct worker *worker);
