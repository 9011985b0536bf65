/* SPDX-License-Identifier: MIT */
/* Starts the helper programs of databases. */
#pragma once

#include "daemon/runtime/children.h"
#include "database/database.h"

struct database_helpers {
        struct database_starter starter;
        struct children *children; /* not owned */
        const char *folder;        /* see database_helpers_init() */
        /* The programs, each opened once: a running sqmgr keeps its version after an upgrade. -errno: not
         * found yet. */
        int program_fds[_DATABASE_ENGINE_MAX];
};

/* Opens the programs in the folder; NULL: as own_program_open() finds them. Each start of a helper whose
 * program is missing tries again. children and folder must outlive *ret, which the caller clears by
 * database_helpers_clear(). */
void database_helpers_init(struct database_helpers *ret, struct children *children, const char *folder);
/* Kills the helpers that are left, and waits for their ends, for a second at most. Call when no struct
 * database uses the starter any more. */
void database_helpers_clear(struct database_helpers *helpers);
