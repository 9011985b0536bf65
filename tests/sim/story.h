/* SPDX-License-Identifier: MIT */
/* Tells what happened in a run. */
#pragma once

#include "sim.h"

/* Runs a seed that fails again, leaves out of its schedule what the failure does not need, and tells the
 * rest. */
void story_explain(uint64_t seed, bool shrink);
/* Runs a seed that fails again, and tells in one line how. */
void story_name(uint64_t seed);
/* Runs a seed and tells everything. Returns true where it fails. */
bool story_tell_all(uint64_t seed);
