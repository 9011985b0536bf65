/* SPDX-License-Identifier: MIT */
/* Folds what was observed into the model, one function for each kind of observation. These alone change a
 * worker's state; what happened is added to the world's events. All times are monotonic microseconds. */
#pragma once

#include "model/fleet.h"

struct exit_status;

/* A process was started in place `index`. Returns the new worker, or NULL where memory is short: then the
 * caller ends the process. */
struct worker *observe_started(struct fleet *fleet, unsigned index, enum reason started_for, pid_t pid,
                               uint64_t pid_start, usec_t now);

/* The same of what is not all new: a copy of model, whose process lives. */
struct worker *observe_started_as(struct fleet *fleet, const struct worker *model);

/* A worker known from before sqmgr began (continuity/state.h). pid_start and heartbeat_pid_start are the
 * start times of the processes that have its pids now, 0 where there is none: only one that started when it
 * did is still the worker. Where neither is, the worker is gone: state WORKER_GONE. Returns NULL where memory
 * is short. */
struct worker *observe_adopted(struct fleet *fleet, const struct worker *known, uint64_t pid_start,
                               uint64_t heartbeat_pid_start, usec_t now);

/* It could not be started: why, in words. */
void observe_start_failed(struct fleet *fleet, unsigned index, const char *why, usec_t now);

/* The process that beats for this worker was found: itself, or a descendant. A pid of 0: it is gone again. */
void observe_heartbeat_process(struct worker *worker, pid_t pid, uint64_t pid_start, usec_t now);

void observe_heartbeat(struct worker *worker, const struct heartbeat *heartbeat, usec_t now);

void observe_booted(struct worker *worker, bool booted, usec_t now);

/* The arguments of a process of its tree say that it may take so long to exit once it is told; 0: nothing. */
void observe_shutdown_time(struct worker *worker, usec_t shutdown);

/* The worker's process was signalled as the action asked; error: 0, or a positive errno where it was not.
 * EAGAIN, of the first: it awaits rest. */
void observe_quieted(struct worker *worker, enum reason reason, int error, usec_t now);

/* One that is unproven has had no signal: it is let go of, state WORKER_GONE. */
void observe_stopped(struct worker *worker, enum reason reason, int error, usec_t now);

void observe_killed(struct worker *worker, int error, usec_t now);

/* The main process has exited while the one that beats lives: that is the worker from now on. */
void observe_promoted(struct worker *worker);

/* The main process has exited before any beat was seen, and left another one of the worker's behind: that is
 * the worker from now on. */
void observe_orphan(struct worker *worker, pid_t pid, uint64_t pid_start);

/* The worker is gone: state WORKER_GONE, to be forgotten by fleet_reap(). */
void observe_exit(struct worker *worker, const struct exit_status *exit, usec_t now);

/* The same of the main process and the one that beat, but another one was left behind that has booted. That
 * is the worker from now on: it leaves, and takes up its place again should it beat. */
void observe_left_behind(struct worker *worker, const struct exit_status *exit, pid_t pid, uint64_t pid_start,
                         usec_t now);

/* The last lines of a worker that is gone have come, "" where there are none: for each token once. What tells
 * of another end by then stays as it is. */
void observe_log_tail(struct fleet *fleet, uint64_t token, const char *lines);
