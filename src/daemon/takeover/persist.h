/* SPDX-License-Identifier: MIT */
/* Reads the state that an earlier sqmgr left, and writes it for the next. */
#pragma once

#include "daemon/runtime/runtime.h"
#include "daemon/takeover/order_writer.h"
#include "daemon/takeover/unknown.h"
#include "io/statefile.h"

struct search; /* search.h */
struct state;

#define BOOT_ID_MAX 64

struct persist {
        struct runtime *runtime; /* not owned */
        char boot_id[BOOT_ID_MAX];
        int error; /* result of the last write; 0: written */
        struct order_writer orders;
        /* The search for workers of an earlier sqmgr. NULL: the search is over. */
        struct search *search;
        struct unknown unknown; /* found once the search was over */
};

/* Writes the state, then lets the commands of started templates begin, even after a failure
 * (templates_begin()). Returns false if the write failed. An error is logged only when it changes. */
bool persist_save(struct persist *persist, usec_t now);
/* Like persist_save() outside of a pass. If the write fails, the next pass tries again. */
void persist_save_now(struct persist *persist, usec_t now);

/* Reads and unpacks the file at path, as statefile_read(). For boot_id and now see state_unpack(). Returns an
 * enum statefile_outcome, for STATEFILE_READ with *ret to be freed by state_free(); STATEFILE_LOST for what
 * is not a valid state, too; or -errno if memory or descriptors are short. */
int state_load(const char *path, const char *boot_id, usec_t now, struct state **ret, char *why,
               size_t why_size);

/* Reads the id of this boot; "" if the kernel does not provide it. Returns boot_id. */
const char *state_load_boot_id(char boot_id[static BOOT_ID_MAX]);
