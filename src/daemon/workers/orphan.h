/* SPDX-License-Identifier: MIT */
/* Finds processes left by a command that goes to the background. */
#pragma once

#include "daemon/runtime/runtime.h"
#include "io/proc.h"

struct orphan_search; /* a search for the leftover process of a worker */
struct worker;

/* orphan is owned by the callee, to be closed; NULL: none found. The search has ended and is already
 * freed. */
typedef void (*orphan_fn)(struct worker *worker, struct proc *orphan);

/* Searches for a leftover process of a worker whose process, run by uid, has exited before any heartbeat.
 * Candidates are orphans reparented to us as subreaper, of the same start and user (any user if uid is 0). If
 * failed (by the exit status), an orphan counts only with evidence that it has booted. done is called once,
 * later, unless orphan_search_free(*ret) is called first. Returns 0 or -errno. */
int orphan_search_start(struct runtime *runtime, struct worker *worker, uid_t uid, bool failed,
                        orphan_fn done, struct orphan_search **ret);
struct orphan_search *orphan_search_free(struct orphan_search *orphan_search);
