/* SPDX-License-Identifier: MIT */
/* The ledger (continuity/ledger.h) of the running sqmgr: opens it beside the state file, and makes room for
 * each start. */
#pragma once

#include "daemon/runtime/runtime.h"

/* Opens the ledger; see LEDGER_GAP_SEARCH. Returns 0 or -errno. */
int start_record_open(struct runtime *runtime);
/* If the file of the ledger is lost, makes the ledger volatile, reports that, and records all workers again.
 * Call at each wakeup. */
void start_record_renew(struct runtime *runtime);
/* Gives each worker that has no slot one, if there is room by now. Makes the file of the ledger again if
 * somebody has deleted it, or if it could not be made before. Call at each regular poll. */
void start_record_keep(struct runtime *runtime);
void start_record_close(struct runtime *runtime);

/* Records a start at `index` that is about to be made. Returns the number of its slot; 0 if there is no room:
 * the start is made all the same, and the ledger counts as volatile until start_record_keep(). */
unsigned start_record_begin(struct runtime *runtime, const struct fleet *fleet, unsigned index,
                            uint64_t generation, enum reason reason, usec_t now);
/* Records the running process of a worker that has no slot. Returns the number of its slot; 0 if there is no
 * room: the ledger then counts as volatile. */
unsigned start_record_add(struct runtime *runtime, const struct worker *worker);
