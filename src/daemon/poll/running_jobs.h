/* SPDX-License-Identifier: MIT */
/* Reads the running jobs of workers from their server where needed. Finds the age of the oldest job while a
 * worker drains, and jobs that run longer than job_warn_after, reported once each. After memory exceeded a
 * limit, finds the worker's job classes. Keeps the jobs of a worker that may exit in the middle of them
 * (drain_remedy). */
#pragma once

#include "daemon/runtime/runtime.h"

struct job_list;

/* Observes the jobs that the worker runs: at its current heartbeat, or as read now. culprits: its memory has
 * exceeded a limit. */
void running_jobs_observe(struct worker *worker, const struct job_list *list, bool culprits);
/* Returns true if the jobs that the worker runs may run again once it has exited. */
bool running_jobs_may_be_cut_off(const struct worker *worker);
/* Reads the running jobs of this worker if it drains, or if job_warn_after may apply to any of them. */
void running_jobs_poll(struct worker *worker);
/* Reads the running jobs of all workers whose memory exceeded a limit, and reports the job classes; and the
 * jobs of workers that have begun to drain, if these may be cut off. */
void running_jobs_tick(const struct world *world);
