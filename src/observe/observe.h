/* SPDX-License-Identifier: MIT */
/* Records observations in the model, one function for each kind of observation. Only these functions change a
 * worker's state. Each adds its events to the world. All times are monotonic microseconds. */
#pragma once

#include "model/fleet.h"

struct exit_status;

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

/* Records the time of a tick by three clocks, in microseconds. Returns true if time became doubtful since the
 * last tick (P9). Call observe_time() afterwards. */
bool observe_clocks(struct world *world, usec_t monotonic, usec_t boottime, usec_t realtime);
/* Call before each plan: resets or reports what has lasted long enough, and ends rollouts that are done or
 * halt. */
void observe_time(struct world *world, usec_t now);

/* Records the memory that is available now, in bytes. */
void observe_available_memory(struct world *world, uint64_t bytes);

/* Records the number of processes that the kernel's OOM killer has ended so far. The first reading is only
 * the baseline. */
void observe_oom_kills(struct world *world, uint64_t kills, usec_t now);

/* The state was written, or could not be. */
void observe_saved(struct world *world, bool saved, usec_t now);

/* The connection to the fleet's server has this state now; READER_STATE_CONNECTED for a fleet without a
 * server. The first connection reports no event. A server that refuses writes counts as down, since no
 * worker can send heartbeats. */
void observe_server(struct fleet *fleet, enum reader_state state, usec_t now);

static inline void observe_redis(struct fleet *fleet, bool up, usec_t now)
{
        observe_server(fleet, up ? READER_STATE_CONNECTED : READER_STATE_DOWN, now);
}

/* The Sentinels report another server as the fleet's master; from, to: `host:port`. The caller has reported
 * the loss with observe_redis() before. Evidence from the new server counts as after any reconnection. */
void observe_failover(struct fleet *fleet, const char *from, const char *to);

/* An adopted worker cannot be watched: it is released as if never adopted. */
static inline void observe_unadopted(struct worker *worker)
{
        worker->state = WORKER_GONE;
}

/* durable: the ledger outlives sqmgr. */
void observe_ledger(struct world *world, bool durable);

/* held: starts wait, because processes that may be workers of this fleet are not judged yet. unknown:
 * moreover, the state file has no record of the fleet. */
void observe_hold(struct fleet *fleet, bool held, bool unknown);

/* A replacement that breaches the threshold within this time of its first heartbeat is churn. */
#define CHURN_USEC (10 * USEC_PER_MIN)

/* Records one sample of a regular poll, not of a fast poll. */
void observe_memory(struct worker *worker, uint64_t bytes, usec_t now);

/* As observe_memory(), but compares the limits with share, the proportional share of a forked worker. */
void observe_shared_memory(struct worker *worker, uint64_t bytes, uint64_t share, usec_t now);

/* Records the memory that the worker shares with no other process. */
static inline void observe_own_memory(struct worker *worker, uint64_t bytes)
{
        worker->memory.own_bytes = bytes;
}

/* The work list was read. oldest: run time of the oldest job in microseconds; 0: not known. */
void observe_jobs(struct worker *worker, const struct job_list *jobs, usec_t oldest, usec_t now);

/* The worker is about to be asked to exit for that reason. Reports the jobs that this cuts off, if any. */
void observe_cut_off(const struct worker *worker, enum reason reason, usec_t now);

/* A job has been running for longer than allowed: for runs, in microseconds. */
void observe_long_job(struct worker *worker, const struct job *job, usec_t runs);

/* Returns the heartbeat, completed by the process title: number of running jobs, and whether the worker is
 * quiet. For frameworks whose title completes the heartbeat. */
struct heartbeat heartbeat_complete(const struct worker *worker, const struct heartbeat *heartbeat,
                                    unsigned busy, bool quiet);

/* The worker's status file was read. fault: why it does not count, or HEARTBEAT_FAULT_NONE. */
static inline void observe_heartbeat_fault(struct worker *worker, enum heartbeat_fault fault)
{
        worker->heartbeat.fault = fault;
}

/* The threads of the heartbeat process were counted. job_threads: threads that run jobs, by their names. */
void observe_threads(struct worker *worker, unsigned job_threads);

/* The title of the heartbeat process was read. known: false if the title shows nothing; busy and quiet then
 * do not count. While Redis is down, busy replaces the number of running jobs. */
void observe_title(struct worker *worker, bool known, unsigned busy, bool quiet);

/* The command line of a process of the worker was read. shutdown: how long the worker may take to exit after
 * its stop signal, in microseconds; 0: not shown. */
void observe_shutdown_time(struct worker *worker, usec_t shutdown);

/* Call for a worker whose heartbeat is elsewhere. peers: see struct worker_evidence; "": none, or not known.
 */
void observe_peers(struct worker *worker, const char *peers);

/* ambiguous: several processes send heartbeats that may be this worker's, which has no known heartbeat;
 * false: no longer so. */
void observe_ambiguous(struct worker *worker, bool ambiguous);

/* A search for another process of the worker that sends heartbeats has ended. pid: that process; 0: none
 * found. */
void observe_sibling(struct worker *worker, pid_t pid, usec_t now);

/* Title or threads of the worker show that it has booted: from now on their absence is evidence in its fleet.
 */
void observe_boot_in_proc(const struct worker *worker);

/* Call after boot_timeout with the facts of /proc beside title and threads; observe_booted() comes next.
 * apart: it has no child, no connection and no further thread, and sleeps. wakeups: as proc_sleeps() returns;
 * 0 unless apart. */
void observe_activity(struct worker *worker, bool apart, uint64_t wakeups, usec_t now);

/* The processes of the worker were checked. booted: one of them has booted. A starting worker whose heartbeat
 * was not found is reported once. */
void observe_booted(struct worker *worker, bool booted, usec_t now);

/* Records how the environment that the worker was started with differs from redis_url. Returns true once per
 * fleet, for the first worker that differs: the caller then warns. */
bool observe_environment_redis(struct worker *worker, const struct redis_comparison *redis);
/* A title of a starting worker's processes shows whether the worker has booted. searched_at: when the last
 * search for its heartbeat that found nothing began; 0: none. Returns true once the heartbeat is missing:
 * observe_booted() comes next. */
bool observe_boot_title(struct worker *worker, bool booted, usec_t searched_at, usec_t now);
/* process.heartbeat_pid names the process that has booted, and no heartbeat of that process was found. */
void observe_elsewhere(struct worker *worker);
