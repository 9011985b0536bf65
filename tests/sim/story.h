/* SPDX-License-Identifier: MIT */
/* Prints what happened in a run. */
#pragma once

#include "sim.h"

/* Runs a failing world again, reduces its schedule to what the failure needs, and prints the run. shrink:
 * false: without reducing. */
void story_explain(const struct origin *origin, bool shrink);
/* Runs a failing world again, and prints in one line how it fails. */
void story_name(const struct origin *origin);
/* Runs the world and prints everything. Returns true if it fails. */
bool story_report_all(const struct origin *origin);
/* From now on each event is printed at once, after name. */
void story_begin(struct sim *sim, const char *name);
void story_end(struct sim *sim);
