/* SPDX-License-Identifier: MIT */
/* Checks that a signal does not hit a worker just as it takes a job. */
#pragma once

#include "daemon/workers/process.h"

/* Polls the process that sends heartbeats. The process is idle while a child of it runs a job. Or its main
 * thread has slept for three seconds without waking, in a job or waiting for one: this takes two polls.
 * Returns 1, 0 or -errno. */
int idle_check_poll(struct process *process, usec_t now);
