/* SPDX-License-Identifier: MIT */
/* Delivers a signal to the process of a worker that sends heartbeats: by its pidfd; or through the server, if
 * no signal reaches the process (worker_process.remote). */
#pragma once

#include "daemon/workers/process.h"

/* only_caught: a process that does not catch the signal gets none, since it would be killed or stopped. A
 * process that may not be signaled is remote from then on. Returns 0, or a positive errno: ENOTSUP: the
 * signal is not caught; ESRCH: the process is not known; ENOTCONN: the server is down. */
int delivery_send(struct worker *worker, int signo, bool only_caught);
