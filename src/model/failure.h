/* SPDX-License-Identifier: MIT */
/* What follows from a life that ended too soon, or never began: the next start waits, and a restart may halt.
 */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct fleet;

/* The next start of the fleet waits, longer with each in a row. */
void failure_back_off(struct fleet *fleet, usec_t now);
/* What was started at spawned_at, of this generation, has failed, as fleet->crash_last says. Those of a time
 * without Redis say nothing of the release. short_life: starts wait, too. */
void failure_observe(struct fleet *fleet, uint64_t generation, usec_t spawned_at, bool short_life,
                     usec_t now);
