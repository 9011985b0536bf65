/* SPDX-License-Identifier: MIT */
/* Decides whether a worker's heartbeat is recent enough to act on, and for how long the worker has been
 * silent. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct worker;

/* Returns true if the heartbeat has changed recently: within the framework's limit, after the last doubt
 * about time, with Redis up. */
bool worker_fresh(const struct worker *worker, usec_t now);

/* Returns the end of a worker's trial: ready_after from its first heartbeat. An exit before that is a failed
 * start, and counts against the release if the worker is a new one (P7). Valid only after the first
 * heartbeat. */
usec_t worker_ready_at(const struct worker *worker);

/* Returns true if the worker is fresh and active for ready_after: other workers may then be quieted. */
bool worker_ready(const struct worker *worker, usec_t now);

/* Returns true if the worker's heartbeat is elsewhere, and its title was read recently, after the last doubt
 * about time, with Redis up. */
bool worker_title_fresh(const struct worker *worker, usec_t now);

/* Returns true if the title has shown for ready_after that the worker accepts jobs, though its heartbeat is
 * elsewhere. Other workers whose heartbeat is elsewhere, too, may then be quieted. */
bool worker_title_ready(const struct worker *worker, usec_t now);

/* Returns the age in microseconds from which a heartbeat is no longer fresh. */
usec_t worker_stale_usec(const struct worker *worker);

/* Returns how long, in microseconds, one process must be silent while another one sends heartbeats, before
 * the silent one counts as ended. Longer than a pause of all local processes that raises no doubt about time.
 */
usec_t worker_outlived_usec(const struct worker *worker);

/* Returns how long, in microseconds, a worker has been silent while its heartbeats could have been received.
 */
usec_t worker_silent_usec(const struct worker *worker, usec_t now);

/* Returns true if that is longer than hang_after. */
bool worker_silent_too_long(const struct worker *worker, usec_t now);

/* Returns true if everything since `at` can be evidence: neither a doubt about time nor an outage of Redis
 * has come since. False for 0. */
bool worker_trusted_since(const struct worker *worker, usec_t at);

/* Returns true if the worker is active and was found deaf (observe/observe_deaf.h), and nothing
 * has raised a doubt about that since. */
bool worker_is_deaf(const struct worker *worker);
