/* SPDX-License-Identifier: MIT */
/* Handles the exits of processes: workers, which are then rescued or replaced, and all other children. */
#pragma once

#include "daemon/workers/process.h"

/* Watches the main process. Returns 0 or -errno. */
int exits_watch(struct process *process);
/* Watches heartbeat, the process that sends heartbeats, from now on. Must not be the main process; ownership
 * is taken in all cases. Returns 0, or -errno with nothing changed. */
int exits_watch_heartbeat(struct process *process, struct proc *heartbeat);

/* Handles the exits that awaited answers of the proc reader. Call once these have answered
 * (daemon/runtime/proc_facts.h). */
void exits_resume(struct runtime *runtime);

/* Reaps exited children: workers, other children, and orphans inherited as subreaper. Returns true if more
 * may be waiting: call again after other events were handled. */
bool exits_reap(struct runtime *runtime);
