/* SPDX-License-Identifier: MIT */
/* The file that passes the state (continuity/state.h) from one sqmgr to the next. */
#pragma once

#include "base/usec.h"
#include <stddef.h>

struct state;

/* The outcome of reading the file. All but STATEFILE_READ leave *ret unchanged and write an explanation to
 * why. */
enum statefile_outcome {
        STATEFILE_READ,
        STATEFILE_MISSING,
        STATEFILE_LOST, /* the file cannot be read, is not trusted, or is not a valid state */
};

/* Reads and unpacks the file at path, which must belong to our own user. For boot_id and now see
 * state_unpack(). May block. Returns an enum statefile_outcome, for STATEFILE_READ with *ret to be freed by
 * state_free(); or -errno if memory or descriptors are short. */
int statefile_read(const char *path, const char *boot_id, usec_t now, struct state **ret, char *why,
                   size_t why_size);

/* Atomically replaces the file at path with these bytes (mode 0600). Returns 0, or -errno with the file
 * unchanged. Only one writer at a time: the holder of the lock beside the file. */
int statefile_write(const char *path, const uint8_t *bytes, size_t size);

#define BOOT_ID_MAX 64

/* Reads the id of this boot; "" if the kernel does not provide it. Returns boot_id. */
const char *statefile_boot_id(char boot_id[static BOOT_ID_MAX]);
