/* SPDX-License-Identifier: MIT */
/* Records what /proc and a status file show of a worker in addition to its heartbeat. */
#pragma once

#include "model/worker.h"

/* Returns the heartbeat, completed by the process title: number of running jobs, and whether the worker is
 * quiet. For frameworks whose title completes the heartbeat. */
struct heartbeat heartbeat_complete(const struct worker *worker, const struct heartbeat *heartbeat,
                                    unsigned busy, bool quiet);

/* Returns the heartbeat, completed by what only sqmgr knows of the worker: see process_is_heartbeat and
 * quiet_is_silent in settings/traits.h. now: as in its sent_usec, CLOCK_MONOTONIC. */
struct heartbeat heartbeat_amend(const struct worker *worker, const struct heartbeat *heartbeat, usec_t now);

/* The worker's status file was read. fault: why it does not count, or HEARTBEAT_FAULT_NONE. */
void observe_heartbeat_fault(struct worker *worker, enum heartbeat_fault fault);

/* The threads of the heartbeat process were counted. job_threads: threads that run jobs, by their names. */
void observe_threads(struct worker *worker, unsigned job_threads);

/* The title of the heartbeat process was read. known: false if the title shows nothing; busy and quiet then
 * do not count. While Redis is down, busy replaces the number of running jobs. */
void observe_title(struct worker *worker, bool known, unsigned busy, bool quiet);

/* Call for a worker whose heartbeat is elsewhere. peers: see struct worker_evidence; "": none, or not known.
 */
void observe_peers(struct worker *worker, const char *peers);

/* ambiguous: several processes send heartbeats that may be this worker's, which has no known heartbeat;
 * false: no longer so. */
void observe_ambiguous(struct worker *worker, bool ambiguous);

/* A search for another process of the worker that sends heartbeats has ended. pid: that process; 0: none
 * found. */
void observe_sibling(struct worker *worker, pid_t pid, usec_t now);
