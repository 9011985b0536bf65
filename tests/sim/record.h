/* SPDX-License-Identifier: MIT */
/* Records each pass as sqmgr does (record/record_rules.h), and replays the record: the same decisions must
 * result. */
#pragma once

#include "base/usec.h"
#include <stddef.h>
#include <stdint.h>

struct plan;
struct record_sim;
struct sim;

/* Begins a record of the simulation. Returns 0 or -ENOMEM. file: where record_close() writes the longest
 * segment; NULL: nowhere. */
int record_open(struct sim *sim, const char *file);
/* Replays what is left, and frees the record. */
void record_close(struct sim *sim);

void record_planning(struct sim *sim, usec_t now);
void record_planned(struct sim *sim, const struct plan *plan, usec_t now);
