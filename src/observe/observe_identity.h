/* SPDX-License-Identifier: MIT */
/* Folds what /proc and a status file show of a worker beside its heartbeat into the model. */
#pragma once

#include "model/worker.h"

/* Its beat with what its title adds, of a framework whose title completes it: how many jobs it runs, and
 * whether it is quiet. */
struct heartbeat heartbeat_complete(const struct worker *worker, const struct heartbeat *heartbeat,
                                    unsigned busy, bool quiet);

/* The file that it writes its heartbeats to was looked at: it counts, or does not. */
void observe_heartbeat_fault(struct worker *worker, enum heartbeat_fault fault);

void observe_threads(struct worker *worker, unsigned job_threads);

void observe_title(struct worker *worker, bool known, unsigned busy, bool quiet);

/* Several processes beat that may be this one, which is not known to beat; or that is over. */
void observe_ambiguous(struct worker *worker, bool ambiguous);

/* It was looked for what else of it beats: another process does, or none that is known; 0. */
void observe_sibling(struct worker *worker, pid_t pid, usec_t now);
