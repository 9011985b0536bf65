/* SPDX-License-Identifier: MIT */
/* Reads the running jobs of workers where needed. Finds the age of the oldest job while a worker drains, and
 * jobs that run longer than job_warn_after, reported once each. After memory exceeded a limit, finds the
 * worker's job classes. */
#pragma once

#include "daemon/runtime/runtime.h"

/* Reads the running jobs of this worker if it drains, or if job_warn_after may apply to any of them. */
void running_jobs_poll(struct worker *worker);
/* Reads the running jobs of all workers whose memory exceeded a limit, and reports the job classes. */
void running_jobs_tick(const struct world *world);
