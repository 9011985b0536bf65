/* SPDX-License-Identifier: MIT */
/* Delivers a signal to the process of a worker that sends heartbeats. There is one way for each signal: the
 * pidfd; or the server, if no signal reaches the process (worker_process.remote), or if the framework has no
 * such signal. */
#pragma once

#include "daemon/workers/process.h"

/* signo 0: the request to accept no more jobs, see traits.quiet_by_query. only_caught: a process that does
 * not catch the signal gets none, since it would be killed or stopped. A process that may not be signaled is
 * remote from then on. Returns 0, or a positive errno: ENOTSUP: the signal is not caught, or the request was
 * refused; ESRCH: the process is not known; ENOTCONN: the server is down. */
int delivery_send(struct worker *worker, int signo, bool only_caught);
