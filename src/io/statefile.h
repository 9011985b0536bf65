/* SPDX-License-Identifier: MIT */
/* The file that holds the state (continuity/state.h) from one sqmgr to the next. */
#pragma once

#include "base/usec.h"
#include <stddef.h>

struct state;

/* What became of reading it. All but the first leave *ret as it is, and a sentence's words in why. */
enum statefile_outcome {
        STATEFILE_READ,
        STATEFILE_MISSING,
        STATEFILE_LOST, /* there is something that cannot be read, is not to be trusted, or is no state */
};

/* Reads the file at path, which must be our own user's, and unpacks it (state_unpack() says what boot_id and
 * now do). May block. Returns an enum statefile_outcome, with *ret to be freed by state_free() for
 * STATEFILE_READ alone; or -ENOMEM. */
int statefile_read(const char *path, const char *boot_id, usec_t now, struct state **ret, char *why,
                   size_t why_size);

/* Puts a file of these bytes (mode 0600) in the place of whatever is at path: wholly or, with -errno, not at
 * all. For one writer at a time: who holds the lock beside it. */
int statefile_write(const char *path, const uint8_t *bytes, size_t size);

#define BOOT_ID_MAX 64

/* Names this boot of the machine; "" where the kernel does not tell. Returns boot_id. */
const char *statefile_boot_id(char boot_id[static BOOT_ID_MAX]);
