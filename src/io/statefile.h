/* SPDX-License-Identifier: MIT */
/* The file that passes the state from one sqmgr to the next, as bytes; daemon/takeover/persist.h reads
 * them. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The outcome of reading the file. All but STATEFILE_READ leave *ret unchanged and write an explanation to
 * why. */
enum statefile_outcome {
        STATEFILE_READ,
        STATEFILE_MISSING,
        STATEFILE_LOST, /* the file cannot be read or is not trusted */
};

/* Reads the file at path, which must belong to our own user. May block. Returns an enum statefile_outcome,
 * for STATEFILE_READ with the bytes in *ret, to be freed by free(); or -errno if memory or descriptors are
 * short. */
int statefile_read(const char *path, char **ret, size_t *ret_size, char *why, size_t why_size);

/* Atomically replaces the file at path with these bytes (mode 0600). Returns 0, or -errno with the file
 * unchanged. Only one writer at a time: the holder of the lock beside the file. */
int statefile_write(const char *path, const uint8_t *bytes, size_t size);

/* As statefile_write(), but returns only once the bytes are on the disk, however long that takes; for a
 * process of its own. Waits for another writer of this file to end. makes_folders: a missing directory is
 * made, for our own user alone. */
int statefile_write_synced(const char *path, bool makes_folders, const uint8_t *bytes, size_t size);

/* Moves the state and the ledger from the path that the last sqmgr used to this one. link: a symbolic link to
 * the state in use, in a directory that only we and root may write to; it leads to path afterwards. The
 * caller holds the lock of path. Returns 1 with the earlier path in old if the state was moved, 0 if there
 * was none elsewhere, or -errno. After an error, the state at old is not read again. */
int statefile_follow(const char *link, const char *path, char old[static PATH_MAX]);
