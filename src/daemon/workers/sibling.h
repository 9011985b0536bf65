/* SPDX-License-Identifier: MIT */
/* Processes of a worker besides the one that beat. */
#pragma once

#include "daemon/workers/process.h"

/* Does another process that the worker's command started show that it has booted, below the main one or left
 * behind in its group? Returns 1, with *ret to be closed where that is asked for; 0; or -errno where there
 * was no descriptor or memory to find out with. */
int sibling_find(struct process *process, struct proc **ret);
