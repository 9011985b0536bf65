/* SPDX-License-Identifier: MIT */
/* Checks that a signal does not hit a worker just as it takes a job. */
#pragma once

#include "daemon/workers/process.h"

/* Polls the process that sends heartbeats. Returns 1 if the process is not taking a job: a child of it runs
 * one, or its main thread has slept for three seconds without waking, within a job or waiting for one.
 * Sleeping is proven at the second poll at the earliest. Returns 0 if nothing is proven, -ESRCH if the
 * process is not known, or another -errno. */
int idle_check_poll(struct process *process, usec_t now);
