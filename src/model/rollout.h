/* SPDX-License-Identifier: MIT */
/* A restart in progress: its progress, halt and end. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "model/event.h"

struct fleet;
struct orderer;
struct worker;

/* Starts a restart with a new generation: all existing workers become outdated. by, here and below: who
 * ordered it; NULL: nobody, or not known. */
void rollout_start(struct fleet *fleet, const struct orderer *by, usec_t now);
/* Call after the launch settings have changed: workers that were started from other settings become outdated.
 * A running restart then replaces all existing workers, and its timeout and count of failures begin anew. */
void rollout_outdate(struct fleet *fleet, usec_t now);
/* Aborts a running restart: no further old worker is quieted. why: copied. Does nothing if none runs. */
void rollout_abort(struct fleet *fleet, const char *why, const struct orderer *by);
/* Acknowledges a halted restart. Old and new workers stay as they are. Does nothing if none has halted. */
void rollout_acknowledge(struct fleet *fleet, const struct orderer *by);

/* Records progress: rollout_timeout counts from now. */
void rollout_observe_progress(struct fleet *fleet, usec_t now);
/* Records that a new worker failed, as described in fleet->crash_last. May halt the restart. */
void rollout_observe_failure(struct fleet *fleet, usec_t now);
/* Ends a complete restart. Halts a restart that made no progress for rollout_timeout. Call regularly. */
void rollout_observe_time(struct fleet *fleet, usec_t now);

/* Returns true if new workers failed and none has proven itself since: no further old worker is quieted (P7).
 */
bool rollout_is_held(const struct fleet *fleet);

/* Returns why the worker was to leave before it refused to be quiet; REASON_NONE: for nothing, or for a
 * restart that was halted or aborted, which replaces no more workers. */
enum reason rollout_kept_reason(const struct worker *worker);
