/* SPDX-License-Identifier: MIT */
/* Records observations in the model, one function for each kind of observation. Only these functions change a
 * worker's state. Each adds its events to the world. All times are monotonic microseconds. */
#pragma once

#include "base/usec.h"
#include "model/fleet.h"
#include "model/worker.h"

struct exit_status;
struct world;

/* A process was started at `index`. Returns the new worker, or NULL if out of memory: the caller then ends
 * the process. */
struct worker *observe_started(struct fleet *fleet, unsigned index, enum reason started_for, pid_t pid,
                               uint64_t pid_start, usec_t now);

/* Like observe_started() for a process that already exists. model: copied into the new worker. */
struct worker *observe_started_as(struct fleet *fleet, const struct worker *model);

/* Adds a worker that a previous sqmgr started (continuity/state.h). pid_start, heartbeat_pid_start: start
 * times of the processes that have its pids now, 0 if there is none. Only a process with the recorded start
 * time is still the worker. If neither is, the worker gets state WORKER_GONE. Returns NULL if out of memory.
 */
struct worker *observe_adopted(struct fleet *fleet, const struct worker *known, uint64_t pid_start,
                               uint64_t heartbeat_pid_start, usec_t now);

/* sqmgr itself could not start the process. error: the errno. */
void observe_start_failed(struct fleet *fleet, unsigned index, int error, usec_t now);
/* sqmgr could not watch the process that it has started, and has killed it. Without a handle, the worker is
 * gone at once; otherwise its exit is observed later. */
void observe_unwatched(struct worker *worker, int error, usec_t now);

/* The worker is adopted with orders.unconfirmed. signo: its stop signal. */
void observe_unconfirmed(const struct worker *worker, int signo);

/* The process that sends this worker's heartbeats was found: the main process or a descendant. pid 0: that
 * process is gone. */
void observe_heartbeat_process(struct worker *worker, pid_t pid, uint64_t pid_start, usec_t now);

/* The process that sends the worker's heartbeats is out of reach, see worker_process.remote. No effect if the
 * framework reads no signals from its server. observe_heartbeat_process() of another process ends it. */
void observe_remote(struct worker *worker);

/* A heartbeat of the worker was read. heartbeat is copied; its asked_at, or else now, is the time of the
 * reading. Ignored if heartbeat->start belongs to another process. */
void observe_heartbeat(struct worker *worker, const struct heartbeat *heartbeat, usec_t now);

/* After observe_title(), for a worker whose heartbeat is elsewhere. job_threads: as the title claims. */
void observe_title_elsewhere(struct worker *worker, unsigned job_threads, usec_t now);

/* The next three: the worker was signaled as the action requires. error: 0, or a positive errno if the signal
 * was not sent; reported once. ENOTSUP: the process does not catch the signal. EAGAIN, for observe_quieted()
 * only: the worker may be taking a job, try again. */
void observe_quieted(struct worker *worker, enum reason reason, int error, usec_t now);

/* An unproven worker has received no signal: it is released, with state WORKER_GONE. */
void observe_stopped(struct worker *worker, enum reason reason, int error, usec_t now);

void observe_killed(struct worker *worker, int error, usec_t now);

/* The main process has exited, and the process that sends heartbeats lives. The latter is the worker's main
 * process from now on. */
void observe_promoted(struct worker *worker);

/* The main process has exited before any heartbeat, and left another process of the worker. That process is
 * the worker's main process from now on. If the main process had been asked to exit because it showed no
 * boot, the worker is starting and unseen again. */
void observe_orphan(struct worker *worker, pid_t pid, uint64_t pid_start, usec_t now);

/* The worker is gone: sets WORKER_GONE; fleet_reap() frees it. */
void observe_exit(struct worker *worker, const struct exit_status *exit, usec_t now);

/* The main process and the process that sent heartbeats have exited, and left a process behind, which is the
 * worker from now on. That process has booted or, with traits->jobs_outlive_it, finishes a job. An active
 * worker becomes quiet. The worker becomes active again if that process sends heartbeats. */
void observe_left_behind(struct worker *worker, const struct exit_status *exit, pid_t pid, uint64_t pid_start,
                         usec_t now);

/* The log tail of a dead worker has arrived; "" if there is none. Call once for each token. Errors that were
 * recorded for other workers since then remain unchanged. */
void observe_log_tail(struct fleet *fleet, uint64_t token, const struct quoted *lines);

/* Call before each plan: resets what has lasted long enough, and ends rollouts that are done or halt. */
void observe_time(struct world *world, usec_t now);
