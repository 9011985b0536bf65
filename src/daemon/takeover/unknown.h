/* SPDX-License-Identifier: MIT */
/* Processes in the control group of sqmgr's service that belong to no worker: left by an earlier sqmgr, or by
 * a worker of it, and not adopted. sqmgr adopts the orphans of all processes that it starts itself, so only
 * older processes can be unknown. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

struct world;

#define UNKNOWN_MAX 16

struct unknown {
        struct unknown_process {
                pid_t pid;
                uint64_t start;
        } list[UNKNOWN_MAX];
        size_t n;
};

/* Lists the processes in the file `procs` (cgroup.procs) that were started before `before`, and are neither a
 * worker or a template, nor a descendant of one, nor in the session of one. Reads nothing for which a process
 * can make its reader wait. */
void unknown_read(const char *procs, uint64_t before, const struct world *world, struct unknown *ret);
/* The same for the control group of our service. Call once the workers of an earlier sqmgr are adopted. */
void unknown_find(const struct world *world, struct unknown *ret);
