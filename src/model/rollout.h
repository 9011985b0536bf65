/* SPDX-License-Identifier: MIT */
/* A restart in progress: how it comes forward, halts and ends. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct fleet;
struct orderer;

/* Starts over with a new generation: every worker there is becomes outdated. by, here and below: who ordered
 * it; NULL: nobody, or not known. */
void rollout_start(struct fleet *fleet, const struct orderer *by, usec_t now);
/* Workers would be started otherwise now: all there are become outdated, and a restart that runs replaces
 * them, too. */
void rollout_outdate(struct fleet *fleet, usec_t now);
/* Ends it, if one runs: no further old worker is quieted. */
void rollout_abort(struct fleet *fleet, const char *why, const struct orderer *by);
/* Where it halted: that is known, and done with. Its workers stay as they are, old and new. */
void rollout_acknowledge(struct fleet *fleet, const struct orderer *by);

/* Something moved: rollout_timeout counts from now. */
void rollout_observe_progress(struct fleet *fleet, usec_t now);
/* A new worker failed; fleet->crash_last says how. */
void rollout_observe_failure(struct fleet *fleet, usec_t now);
/* Ends it where it is done, halts it where it is stuck. */
void rollout_observe_time(struct fleet *fleet, usec_t now);

/* New workers failed and none has proven itself since: no further old worker is quieted (P7). */
bool rollout_is_held(const struct fleet *fleet);
