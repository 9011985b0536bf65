/* SPDX-License-Identifier: MIT */
/* Whether the heartbeat of a worker is recent enough to act on, and since when it has been silent. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct worker;

/* Its beat changed of late: within the framework's bound, after the last doubt, with Redis up. */
bool worker_fresh(const struct worker *worker, usec_t now);

/* When the trial of one that has beaten ends: a life that ends before that is a short one, and of a new
 * worker a failure of its release (P7). */
usec_t worker_ready_at(const struct worker *worker);

/* Active for ready_after, and fresh: others may be quieted on its account. */
bool worker_ready(const struct worker *worker, usec_t now);

/* How long without a change of beat is no longer fresh, in microseconds. */
usec_t worker_stale_usec(const struct worker *worker);

/* For how long, in microseconds, one process must stand still while another beats, before it has ended: all
 * that run here may have been paused together, and time is not in doubt for that. */
usec_t worker_outlived_usec(const struct worker *worker);

/* How long a worker has been silent where it could have been heard, in microseconds. */
usec_t worker_silent_usec(const struct worker *worker, usec_t now);

/* That is longer than hang_after. */
bool worker_silent_too_long(const struct worker *worker, usec_t now);
