/* SPDX-License-Identifier: MIT */
/* Writes the state for the next sqmgr. */
#pragma once

#include "daemon/runtime/runtime.h"
#include "daemon/takeover/state_load.h"
#include "daemon/takeover/unknown.h"

struct search; /* search.h */

struct persist {
        struct runtime *runtime; /* not owned */
        char boot_id[BOOT_ID_MAX];
        int error;       /* result of the last write; 0: written */
        bool locked_out; /* another sqmgr holds the lock of the state file: only that one may write it */
        /* The search for workers of an earlier sqmgr. NULL: the search is over. */
        struct search *search;
        struct unknown unknown; /* found once the search was over */
};

/* Writes the state, then lets the commands of started templates begin, even after a failure
 * (templates_begin()). Returns false if the write failed. An error is logged only when it changes. */
bool persist_save(struct persist *persist, usec_t now);
/* Like persist_save() outside of a pass. If the write fails, the next pass tries again. */
void persist_save_now(struct persist *persist, usec_t now);
