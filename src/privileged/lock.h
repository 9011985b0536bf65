/* SPDX-License-Identifier: MIT */
/* A lock file that contains the pid of its holder. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

enum lock_outcome {
        LOCK_TAKEN,
        LOCK_HELD, /* by another process */
};

/* Locks the file at path and writes our pid into it. Creates the file with mode 0600 if missing; its
 * directory must exist.
 *
 * - LOCK_TAKEN: *ret_fd holds the lock until all copies of it are closed. The file stays.
 * - LOCK_HELD: *ret_holder is the pid of the holder, or 0 if the file does not have it yet.
 * - -errno: an error. */
int lock_take(const char *path, int *ret_fd, pid_t *ret_holder);
/* Returns true if the file at path is the one that fd has locked: it was neither deleted nor replaced. */
bool lock_is_in_place(int fd, const char *path);
