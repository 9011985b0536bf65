/* SPDX-License-Identifier: MIT */
/* Reads the state that an earlier sqmgr left. */
#pragma once

#include "base/usec.h"
#include "privileged/statefile.h"

struct state;

/* Reads and unpacks the file at path, as statefile_read(). For boot_id and now see state_unpack(). Returns an
 * enum statefile_outcome, for STATEFILE_READ with *ret to be freed by state_free(); STATEFILE_LOST for what
 * is not a valid state, too; or -errno if memory or descriptors are short. */
int state_load(const char *path, const char *boot_id, usec_t now, struct state **ret, char *why,
               size_t why_size);

#define BOOT_ID_MAX 64

/* Reads the id of this boot; "" if the kernel does not provide it. Returns boot_id. */
const char *state_load_boot_id(char boot_id[static BOOT_ID_MAX]);
