/* SPDX-License-Identifier: MIT */
/* Finds processes of a worker besides the known ones: those left by a command that goes to the background,
 * and siblings: some commands start several processes, or start another when one has ended. */
#pragma once

#include "daemon/workers/process.h"

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
/* Searches for another process of the worker's command that is a booted worker or runs a job. Candidates are
 * below the main process and, with left, those left behind in its group: for these, all of /proc is scanned
 * while the group exists. A process of another worker is no candidate. Returns 1 with *ret, to be closed (ret
 * may be NULL); 0 if there is none; -EINPROGRESS or -ETIMEDOUT as proc_facts_title(); -errno when descriptors
 * or memory are short. */
int sibling_find(struct process *process, bool left, struct proc **ret);
