/* SPDX-License-Identifier: MIT */
/* A lock file that says who holds it. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

enum lock_outcome {
        LOCK_TAKEN,
        LOCK_HELD, /* by another process */
};

/* Locks the file at path, made 0600 where it is missing, and writes this process's pid into it. Its directory
 * must be there. LOCK_TAKEN: *ret_fd holds the lock until it and its copies are closed; the file stays.
 * LOCK_HELD: *ret_holder is the holder's pid, or 0 where it has not written it yet. Otherwise -errno. */
int lock_take(const char *path, int *ret_fd, pid_t *ret_holder);
