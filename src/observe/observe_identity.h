/* SPDX-License-Identifier: MIT */
/* Records what /proc and a status file show of a worker in addition to its heartbeat. */
#pragma once

#include "model/worker.h"

/* Returns the heartbeat, completed by the process title: number of running jobs, and whether the worker is
 * quiet. For frameworks whose title completes the heartbeat. */
struct heartbeat heartbeat_complete(const struct worker *worker, const struct heartbeat *heartbeat,
                                    unsigned busy, bool quiet);

/* The worker's status file was read. fault: why it does not count, or HEARTBEAT_FAULT_NONE. */
void observe_heartbeat_fault(struct worker *worker, enum heartbeat_fault fault);

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
