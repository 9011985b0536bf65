/* SPDX-License-Identifier: MIT */
/* Attaches the processes of a worker: opens, watches and registers them for heartbeats. */
#pragma once

#include "daemon/runtime/runtime.h"

/* Attaches a worker that was just started. Takes ownership of main and report_fd in all cases. Returns 0 or
 * -errno. worker->handle stays NULL only when memory is short. */
int attach_started(struct runtime *runtime, struct worker *worker, struct proc *main, int report_fd);
/* Like attach_started(), for a forked worker that waits at go_fd until it may continue. Takes ownership of
 * go_fd, too, in all cases. */
int attach_forked(struct runtime *runtime, struct worker *worker, struct proc *main, int go_fd);
/* Like attach_started(), for an adopted worker. heartbeat: the process that sends heartbeats if different
 * from main, else NULL; taken over, too. identity is its known identity; NULL: none. record: its slot in the
 * ledger; 0: it has none yet. */
int attach_adopted(struct runtime *runtime, struct worker *worker, struct proc *main, struct proc *heartbeat,
                   const char *identity, unsigned record);
/* For struct links: process pid was found to send heartbeats for this worker. Attaches that process. If that
 * fails, because the process has exited or is not part of the worker, its heartbeats are forgotten. */
void attach_heartbeat(struct worker *worker, pid_t pid, usec_t now);
