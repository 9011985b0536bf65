/* SPDX-License-Identifier: MIT */
/* The proof that a worker runs no job and accepts none (P1), and what the proof still lacks. */
#pragma once

#include "model/worker.h"

/* Returns true if the worker is quieted, and heartbeats, title and thread witness prove that it runs no job
 * and accepts none (P1). Title and threads count only where known. If no heartbeat was ever found, titles
 * over two intervals and the end of all job threads are the proof. A quieted worker cannot become busy again,
 * so the facts need not be fresh. */
bool worker_proven_idle(const struct worker *worker);

/* Returns true if the worker is quieted, and two heartbeats in a row prove that it runs nothing but jobs of
 * the classes that the operator calls interruptible: the busy threads are as many as the jobs of its work
 * list, which all were read, and the title shows no more, where known. One of the two is the last heartbeat.
 * A quieted worker begins no other job. */
bool worker_proven_interruptible(const struct worker *worker);

/* Returns true if one more heartbeat with nothing but such jobs makes that proof. */
bool worker_interrupts_next(const struct worker *worker);

/* Returns true if the process title, which is set at each heartbeat, contradicts the heartbeats attributed to
 * the worker. */
bool worker_contradicted(const struct worker *worker);

/* Returns what the proof still lacks: WAIT_NONE if nothing; WAIT_JOBS, WAIT_SUCCESSOR or WAIT_ELSEWHERE; or
 * WAIT_HEARTBEATS or WAIT_THREADS, with the number of further idle heartbeats in *ret_heartbeats. */
enum wait worker_proof_wait(const struct worker *worker, unsigned *ret_heartbeats);

/* Returns true if something besides heartbeats can show the end of the worker's jobs once it is quiet. */
bool worker_title_can_prove(const struct worker *worker);
/* Returns how long, in microseconds, a title must be idle as part of the proof without heartbeats. */
usec_t worker_title_proof_usec(const struct worker *worker);

/* Returns true if recent tries to quiet the worker failed because it could have been taking a job. */
bool worker_may_take_job(const struct worker *worker, usec_t now);

/* Returns true if the worker may be quieted only once the idle check passes. Returns false after the check
 * has failed for ten seconds: the worker is then quieted anyway. */
bool worker_awaits_idle_check(const struct worker *worker, usec_t now);

/* Returns how long, in microseconds, the oldest job of a quieted or stopping worker has been running. 0: not
 * known, also if that job may have ended since the work list was read. */
usec_t worker_oldest_job_usec(const struct worker *worker, usec_t now);

/* Returns how long, in microseconds, the oldest job of the fleet has been running, from recent work lists.
 * Counts draining workers and, with job_warn_after, all workers. 0: not known. */
usec_t fleet_oldest_job_usec(const struct fleet *fleet, usec_t now);
