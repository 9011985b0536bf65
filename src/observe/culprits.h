/* SPDX-License-Identifier: MIT */
/* The job classes that ran in a worker when its memory exceeded a limit or the kernel's OOM killer ended it:
 * detection and report. */
#pragma once

#include "model/fleet.h"

struct exit_status;

/* Returns true if the work list of this live worker must be read now: it exceeded a limit and has sent a
 * heartbeat since. Returns true once for each limit. */
bool culprits_take(struct worker *worker);

/* Returns true if the kernel's OOM killer probably ended the worker. worker: as it was before its end. exit:
 * how it ended. Call observe_oom_kills() with the current count first. */
bool culprits_oom_killed(const struct world *world, const struct worker *worker,
                         const struct exit_status *exit, usec_t now);

/* Records and reports the jobs of the worker at its last heartbeat, as its work list shows them. at: now, or
 * the time of death of a dead worker. An empty list proves nothing while the heartbeat reports running jobs;
 * the call then does nothing. */
void culprits_observe(struct fleet *fleet, const struct worker *worker, enum culprits_cause cause,
                      const struct job_list *jobs, usec_t at);

/* An upper bound for the text of culprits_text(). */
#define CULPRITS_TEXT_MAX 1024
/* Writes one sentence: "default/3 (pid 123) grew by 212M to 520M within 40s, running ReportJob (2), Mail".
 * Returns text. */
const char *culprits_text(const struct fleet *fleet, const struct culprits *culprits, char *text,
                          size_t size);
