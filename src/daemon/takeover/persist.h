/* SPDX-License-Identifier: MIT */
/* Writes what the next sqmgr has to know. */
#pragma once

#include "daemon/runtime/runtime.h"
#include "io/statefile.h"

struct search; /* search.h */

struct persist {
        struct runtime *runtime; /* not owned */
        char boot_id[BOOT_ID_MAX];
        int error; /* of the last try to write; 0: it is written */
        /* What an earlier sqmgr left is still looked for, which the state then says. NULL: all that lives is
         * known. */
        struct search *search;
};

/* Writes the state; starting as state_pack() takes it. Returns false where it is not written; what fails is
 * told. */
bool persist_save(struct persist *persist, const struct plan *starting, usec_t now);
/* The same outside of a pass; where it is not written the next pass tries again. */
void persist_save_now(struct persist *persist, usec_t now);
