/* SPDX-License-Identifier: MIT */
/* Reads what workers run where somebody wants to know: how old the oldest job is of one that drains, which
 * run for longer than job_warn_after, of which each is told once, and which classes ran in one whose memory
 * went over a limit. */
#pragma once

#include "daemon/runtime/runtime.h"

/* Has the jobs of this worker read, where it drains or any of them may be told of for running too long. */
void running_jobs_poll(struct worker *worker);
/* The same of all whose memory went over a limit: what they ran is told of. */
void running_jobs_tick(const struct world *world);
