/* SPDX-License-Identifier: MIT */
/* Folds what was observed into the model, one function for each kind of observation. These alone change a
 * worker's state; what happened is added to the world's events. All times are monotonic microseconds. */
#pragma once

#include "model/job.h"
#include "model/world.h"

/* The time of a tick by three clocks, in microseconds. Returns true where time became doubtful since the last
 * (P9). Follow with observe_time(). */
bool observe_clocks(struct world *world, usec_t monotonic, usec_t boottime, usec_t realtime);

/* Time has passed: resets what has lasted long enough, ends rollouts that are done or halt. Before each plan.
 */
void observe_time(struct world *world, usec_t now);

void observe_available_memory(struct world *world, uint64_t bytes);
/* How many processes the kernel's OOM killer has ended so far; the first reading tells nothing yet. */
void observe_oom_kills(struct world *world, uint64_t kills, usec_t now);
void observe_redis(struct fleet *fleet, bool up, usec_t now);
/* Its Redis is another server now, as the Sentinels told; both as `host:port`. What is read there is judged
 * as after any loss, which observe_redis() has told before. */
void observe_failover(struct fleet *fleet, const char *from, const char *to);

/* A process was started in place `index`. Returns the new worker, or NULL where memory is short: then the
 * caller ends the process. */
struct worker *observe_started(struct fleet *fleet, unsigned index, enum reason started_for, pid_t pid,
                               uint64_t pid_start, usec_t now);
/* The same of what is not all new: a copy of model, whose process lives. */
struct worker *observe_started_as(struct fleet *fleet, const struct worker *model);
/* A worker known from before sqmgr began (model/state.h). pid_start and beat_pid_start are the start times of
 * the processes that have its pids now, 0 where there is none: only one that started when it did is still the
 * worker. Where neither is, the worker is gone: state WORKER_GONE. Returns NULL where memory is short. */
struct worker *observe_adopted(struct fleet *fleet, const struct worker *known, uint64_t pid_start,
                               uint64_t beat_pid_start, usec_t now);
/* It was adopted and cannot be watched: as if it had not been. */
void observe_unadopted(struct worker *worker);
/* Not all that may be workers of this fleet are known: none is started before that time. 0: they are.
 * unknown: nor does a state tell of any. */
void observe_hold(struct fleet *fleet, usec_t until, bool unknown);
/* A worker of this generation was found. */
void observe_generation(struct fleet *fleet, uint64_t generation);
/* It could not be started: why, in words. */
void observe_start_failed(struct fleet *fleet, unsigned index, const char *why, usec_t now);

/* The process that beats for this worker was found: itself, or a descendant. A pid of 0: it is gone again. */
void observe_beat_process(struct worker *worker, pid_t pid, uint64_t pid_start, usec_t now);
void observe_heartbeat(struct worker *worker, const struct heartbeat *beat, usec_t now);
/* Its beat with what its title adds, of a framework whose title completes it: how many jobs it runs, and
 * whether it is quiet. */
struct heartbeat heartbeat_complete(const struct worker *worker, const struct heartbeat *beat, unsigned busy,
                                    bool quiet);
/* The file that it writes its heartbeats to was looked at: it counts, or does not. */
void observe_beat_fault(struct worker *worker, enum beat_fault fault);
void observe_threads(struct worker *worker, unsigned job_threads);
void observe_title(struct worker *worker, bool known, unsigned busy, bool quiet);
/* Several processes beat that may be this one, which is not known to beat; or that is over. */
void observe_ambiguous(struct worker *worker, bool ambiguous);
void observe_booted(struct worker *worker, bool booted, usec_t now);
/* The arguments of a process of its tree say that it may take so long to exit once it is told; 0: nothing. */
void observe_shutdown_time(struct worker *worker, usec_t shutdown);
/* One regular sample, not one of the fast looks. */
void observe_memory(struct worker *worker, uint64_t bytes, usec_t now);

/* What it holds and shares with no other process. */
void observe_own_memory(struct worker *worker, uint64_t bytes);

/* Its work list was read: it holds these jobs, and the oldest has been running for so long, in microseconds;
 * 0: that is not told. */
void observe_jobs(struct worker *worker, const struct job_list *jobs, usec_t oldest, usec_t now);

/* It is about to be told to exit, for that reason: where that cuts off jobs of it, it is told which. */
void observe_cut_off(const struct worker *worker, enum reason reason, usec_t now);

/* One of its jobs has been running for so long, more than it may. dumped: Sidekiq was asked what it is at. */
void observe_long_job(struct worker *worker, const struct job *job, usec_t runs, bool dumped);

/* The worker's process was signalled as the action asked; error: 0, or a positive errno where it was not.
 * EAGAIN, of the first: it awaits rest. */
void observe_quieted(struct worker *worker, enum reason reason, int error, usec_t now);
/* One that is unproven has had no signal: it is let go of, state WORKER_GONE. */
void observe_stopped(struct worker *worker, enum reason reason, int error, usec_t now);
void observe_killed(struct worker *worker, int error, usec_t now);

/* It was looked for what else of it beats: another process does, or none that is known; 0. */
void observe_others(struct worker *worker, pid_t pid, usec_t now);

/* The main process has exited while the one that beats lives: that is the worker from now on. */
void observe_promoted(struct worker *worker, usec_t now);

/* The main process has exited before any beat was seen, and left another one of the worker's behind: that is
 * the worker from now on. */
void observe_inherited(struct worker *worker, pid_t pid, uint64_t pid_start);

/* How a process ended. */
struct exit_status {
        bool known; /* false: not our child, or lost */
        int status; /* exit status, or the signal's number */
        bool by_signal;
        const char *last_lines;   /* that it wrote; NULL: not known */
        uint64_t lines_token;     /* other than 0: they are being read, see observe_last_lines() */
        const char *launch_error; /* why it never ran its command; NULL: it did */
};
/* That in words: "was killed by signal 9 (SIGKILL)". */
void exit_status_text(const struct exit_status *exit, char *text, size_t size);
/* Adds the last lines that it wrote to that sentence, cut to size. What is told is one line: they are set
 * apart by bars. */
void exit_lines_quote(char *text, size_t size, const char *lines);
/* The worker is gone: state WORKER_GONE, to be forgotten by fleet_reap(). */
void observe_exit(struct worker *worker, const struct exit_status *exit, usec_t now);
/* The same of the main process and the one that beat, but another one was left behind that has booted. That
 * is the worker from now on: it leaves, and takes up its place again should it beat. */
void observe_left_behind(struct worker *worker, const struct exit_status *exit, pid_t pid, uint64_t pid_start,
                         usec_t now);
/* The last lines of a worker that is gone have come, "" where there are none: for each token once. What tells
 * of another end by then stays as it is. */
void observe_last_lines(struct fleet *fleet, uint64_t token, const char *lines);
