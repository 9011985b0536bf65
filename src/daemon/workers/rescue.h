/* SPDX-License-Identifier: MIT */
/* Follows up the death of a worker: reads its running jobs, names the job classes after an OOM kill, and
 * reports or requeues each job. */
#pragma once

#include "daemon/runtime/runtime.h"

struct exit_status; /* model/describe.h */

/* Starts a rescue for rescue_jobs and for OOM kills, if jobs were cut off. The process that sent heartbeats
 * for worker under identity is dead. Does nothing if identity is NULL (not known). Copies worker, as it was
 * before the exit; fleet replaces worker->fleet. A remote worker that still sends heartbeats is quieted and
 * stopped first (observe/rescue.h). exit is how that process ended, as far as known.
 * drained_jobs: see struct process; NULL: none; taken over. */
void rescue_begin(struct runtime *runtime, struct fleet *fleet, const struct worker *worker,
                  const char *identity, const struct exit_status *exit, char **drained_jobs);
/* True if sqmgr should wait for a rescue before it ends. */
bool rescues_delay_exit(const struct runtime *runtime, usec_t now);
/* True if a rescue still needs a fleet that is no longer configured. */
bool rescues_need_removed(const struct runtime *runtime);
/* Drops all rescues, including those in progress. */
void rescues_forget(struct runtime *runtime);
