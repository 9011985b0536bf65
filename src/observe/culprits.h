/* SPDX-License-Identifier: MIT */
/* The job classes that ran in a worker as its memory went over a limit, or as it fell to the kernel's OOM
 * killer: when that is so, and what is told of it. */
#pragma once

#include "model/fleet.h"

struct exit_status;

/* Is the work list of this living worker to be read now? It went over a limit, and has beaten since. Says so
 * once for each limit. */
bool culprits_take(struct worker *worker);

/* Did the kernel's OOM killer end it, as far as can be told? worker as it was before; exit: how it ended;
 * observe_oom_kills() has been told of what there are now. */
bool culprits_oom_killed(const struct world *world, const struct worker *worker,
                         const struct exit_status *exit, usec_t now);

/* What it was running at its last beat, as its work list tells, which is told and kept. at: now or, of a dead
 * one, as it was, when it died. A list that is empty although jobs ran tells nothing. */
void culprits_observe(struct fleet *fleet, const struct worker *worker, enum culprits_cause cause,
                      const struct job_list *jobs, usec_t at);

/* More than the sentence of any takes. */
#define CULPRITS_TEXT_MAX 1024
/* That as one sentence: "default/3 (pid 123) grew by 212M to 520M within 40s, running ReportJob (2), Mail".
 * Returns text. */
const char *culprits_text(const struct fleet *fleet, const struct culprits *culprits, char *text,
                          size_t size);
