/* SPDX-License-Identifier: MIT */
/* Would a signal meet a worker as it takes a job? */
#pragma once

#include "daemon/workers/process.h"

/* Looks at the process that beats. It is at rest while a child of its runs a job, or while its main thread
 * has slept for three seconds and sleeps on: in its job, or in waiting for one. That takes two looks. Returns
 * 1, 0 or -errno. */
int idle_check_poll(struct process *process, usec_t now);
