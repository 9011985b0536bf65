/* SPDX-License-Identifier: MIT */
/* Prints what happened in a run. */
#pragma once

#include "sim.h"

/* Runs a failing world again, reduces its schedule to what the failure needs, and prints the run. */
void story_explain(const struct origin *origin);
/* Runs the world again. Prints all that happens, or, unless all is set, only how it fails, in one line.
 * Returns true if it fails. */
bool story_tell(const struct origin *origin, bool all);
