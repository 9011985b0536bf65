/* SPDX-License-Identifier: MIT */
/* Executes the actions of the plan, and observes their results. */
#pragma once

#include "daemon/workers/process.h"

/* Returns the signal that asks the worker to exit once its jobs have ended. */
int execute_stop_signal(const struct worker *worker);
/* Executes one action. Returns false if the pass needs no further round because of it: the action was refused
 * or postponed, or its result arrives later, as for a fork and for ACTION_GO. */
bool execute_action(struct runtime *runtime, const struct action *action, usec_t now);

/* Polls the process that sends heartbeats. Returns 1 if the process is not taking a job: a child of it runs
 * one, or its main thread has slept for three seconds without waking, within a job or waiting for one.
 * Sleeping is proven at the second poll at the earliest. Returns 0 if nothing is proven, -ESRCH if the
 * process is not known, or another -errno. */
int idle_check_poll(struct process *process, usec_t now);

/* Sends the signal to the process that sends heartbeats. only_caught: a process that does not catch the
 * signal gets none, since it would be killed or stopped. A process that may not be signaled is remote from
 * then on. Returns 0, or a positive errno: ENOTSUP: the signal is not caught; ESRCH: the process is not
 * known; ENOTCONN: the server is down. */
int delivery_send(struct worker *worker, int signo, bool only_caught);
