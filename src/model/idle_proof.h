/* SPDX-License-Identifier: MIT */
/* What proves that a worker runs no job and accepts none (P1), and what that proof still lacks. */
#pragma once

#include "model/worker.h"

struct fleet;

/* Its beats and, where they are known, its title and the thread witness prove that it runs no job and will
 * take none (P1). Facts of a quiet worker stay true, so this says nothing of freshness. */
bool worker_proven_idle(const struct worker *worker);

/* The title of its process, set at each beat, denies what the beats say that are read as its own. */
bool worker_contradicted(const struct worker *worker);

/* What that proof still waits for: WAIT_NONE for nothing, else WAIT_HEARTBEATS or WAIT_THREADS, with the
 * number of further idle beats that are proof enough. */
enum wait worker_proof_wait(const struct worker *worker, unsigned *ret_heartbeats);

/* It was to be quieted of late, and could be taking a job at each try. */
bool worker_may_take_job(const struct worker *worker, usec_t now);

/* It may be quieted only while it runs a job or waits for one: for so long as it is reasonable to wait for
 * that. */
bool worker_awaits_idle_check(const struct worker *worker, usec_t now);

/* How long the oldest job has been running in a worker that takes no new ones, in microseconds; 0: not known,
 * be it that the oldest may have ended since its work list was read. */
usec_t worker_oldest_job_usec(const struct worker *worker, usec_t now);

/* How long the oldest of its jobs has been running, in microseconds, as work lists told that were read of
 * late: of workers that drain and, with job_warn_after, of all. 0: not known. */
usec_t fleet_oldest_job_usec(const struct fleet *fleet, usec_t now);
