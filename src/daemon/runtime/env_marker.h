/* SPDX-License-Identifier: MIT */
/* What sqmgr puts into the environment of its workers, by which they are known again. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "io/proc.h"

/* What is read of an environment: ours stands first in it, but a shell that comes between may have put it
 * anywhere, and anybody's may be huge. */
#define ENV_MARKERS_MAX_BYTES ((size_t)128 << 10)

/* Of anybody's making. NULL: not there. */
struct markers {
        const char *instance, *worker, *generation;
        usec_t started_at; /* when that very start was made; 0: not told */
};

/* Reads the marks of a process, which then point into text. Returns how many bytes its environment has, as
 * far as it was read: 0 for one in the middle of execve(), too; or -errno. */
ssize_t env_markers_read(const struct proc *proc, char text[static ENV_MARKERS_MAX_BYTES],
                         struct markers *ret);
