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
 * directory must exist. The lock belongs to this process, not to its children; a child that shares our table
 * of descriptors (CLONE_FILES) extends it until that child has a table of its own. Closing any descriptor of
 * the file in this process ends the lock: do not lock a path twice.
 *
 * - LOCK_TAKEN: the lock lasts until *ret_fd is closed or this process ends. The file stays.
 * - LOCK_HELD: *ret_holder is the pid of the holder, which may have ended; 0 if it is in another pid
 * namespace.
 * - -errno: an error. */
int lock_take(const char *path, int *ret_fd, pid_t *ret_holder);
/* Returns true if the file at path is the one that fd has locked: it was neither deleted nor replaced. */
bool lock_is_in_place(int fd, const char *path);
