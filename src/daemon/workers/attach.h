/* SPDX-License-Identifier: MIT */
/* Takes hold of the processes of a worker. */
#pragma once

#include "daemon/runtime/runtime.h"
#include "io/proc.h"

/* One that was just started. Takes main and report_fd over, whatever it returns: 0 or -errno; worker->process
 * stays NULL only where memory was short. */
int attach_started(struct runtime *runtime, struct worker *worker, struct proc *main, int report_fd);
/* The same for one that was forked, and awaits at go_fd, taken over too, that it is told to go on. */
int attach_forked(struct runtime *runtime, struct worker *worker, struct proc *main, int go_fd);
/* The same for an adopted one. beat, taken over too: the process that beats, where it is another than main;
 * identity: that it is known to beat under; NULL: none. */
int attach_adopted(struct runtime *runtime, struct worker *worker, struct proc *main, struct proc *heartbeat,
                   const char *identity);
/* The process pid was found to beat for this worker, for links. */
void attach_heartbeat(struct worker *worker, pid_t pid, usec_t now);
