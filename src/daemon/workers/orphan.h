/* SPDX-License-Identifier: MIT */
/* Finds processes left by a command that goes to the background. */
#pragma once

#include "daemon/runtime/runtime.h"
#include "io/proc.h"

struct orphan_search; /* a search for the leftover process of a worker */
struct worker;

/* The callback owns orphan, to be closed by proc_close(); NULL: none found. The search is already freed. */
typedef void (*orphan_fn)(struct worker *worker, struct proc *orphan);

/* Searches for a leftover process of a worker whose process has exited before any heartbeat.
 * Candidates are orphans reparented to us as subreaper, of the same start.
 * failed: the exit status was a failure; an orphan then counts only with evidence that it has booted. Returns
 * 0 with *ret, or -errno. done is called once, from the loop, unless orphan_search_free(*ret) is called
 * first. */
int orphan_search_start(struct runtime *runtime, struct worker *worker, bool failed, orphan_fn done,
                        struct orphan_search **ret);
/* Cancels the search. Accepts NULL; returns NULL. */
struct orphan_search *orphan_search_free(struct orphan_search *orphan_search);
