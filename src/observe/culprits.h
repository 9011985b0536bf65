/* SPDX-License-Identifier: MIT */
/* The job classes that ran in a worker when its memory exceeded a limit or the kernel's OOM killer ended it:
 * detection and report. */
#pragma once

#include "model/fleet.h"

struct exit_status;

/* Returns true if the work list of this live worker must be read now: its memory exceeded a limit, and a
 * heartbeat sent after that has arrived soon enough. Returns true at most once for each breach, and forgets
 * the breach. */
bool culprits_take(struct worker *worker);

/* Returns true if the kernel's OOM killer probably ended the worker. worker: as it was before its end. exit:
 * how it ended. Call observe_oom_kills() with the current count first. */
bool culprits_oom_killed(const struct world *world, const struct worker *worker,
                         const struct exit_status *exit, usec_t now);

/* Records and reports the jobs of the worker at its last heartbeat, as its work list shows them. at: now, or
 * the time of death of a dead worker. Does nothing if jobs is empty although the heartbeat reports running
 * jobs, or if no job in the list is known. */
void culprits_observe(struct fleet *fleet, const struct worker *worker, enum culprits_cause cause,
                      const struct job_list *jobs, usec_t at);

/* A size that is enough for any text of culprits_text(). */
#define CULPRITS_TEXT_MAX 1024
/* Writes one sentence: "default/3 (pid 123) grew by 212M to 520M within 40s, running ReportJob (2), Mail".
 * Returns text. */
const char *culprits_text(const struct fleet *fleet, const struct culprits *culprits, char *text,
                          size_t size);
