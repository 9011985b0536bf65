/* SPDX-License-Identifier: MIT */
/* The exits of processes: those of workers, whose successor or rescue begins then, and of all other children.
 */
#pragma once

#include "daemon/workers/process.h"

/* Watches the main process. Returns 0 or -errno. */
int exits_watch(struct process *process);
/* Watches the process that beats, from now on this one, which is another than the main one and taken over.
 * Returns 0 or -errno: then nothing is changed. */
int exits_watch_heartbeat(struct process *process, struct proc *heartbeat);

/* Waits for children that have exited: workers, others of ours, and orphans that we inherit as subreaper.
 * Returns whether there may be more of them, for another call that lets others have their turn first. */
bool exits_sweep(struct runtime *runtime);
