/* SPDX-License-Identifier: MIT */
/* Tells what happened in a run. */
#pragma once

#include "sim.h"

/* Runs what fails again, leaves out of its schedule what the failure does not need, and tells the
 * rest. */
void story_explain(const struct origin *origin, bool shrink);
/* Runs what fails again, and tells in one line how. */
void story_name(const struct origin *origin);
/* Runs it and tells everything. Returns true where it fails. */
bool story_report_all(const struct origin *origin);
/* Each event is printed as it comes, with the name of its process. */
void story_begin(struct sim *sim, const char *name);
void story_end(struct sim *sim);
