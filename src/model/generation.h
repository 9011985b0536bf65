/* SPDX-License-Identifier: MIT */
/* The generations of a fleet. A restart begins a new one. So does a reload that changes what workers are
 * started from; a reload that takes the change back returns to the generation that was started from the same
 * settings. */
#pragma once

#include "model/fleet.h"

/* Records that fleet->generation was started from the current settings, and forgets the settings of all other
 * generations. Call for a new fleet, and after fleet->generation was set. */
void generation_begin(struct fleet *fleet);
/* Begins a new generation, higher than all before: all existing workers become outdated. */
void generation_restart(struct fleet *fleet);
/* Returns to an earlier generation: workers and templates of all others become outdated. */
void generation_return(struct fleet *fleet, uint64_t generation);
/* Call after the launch settings have changed. During a restart a new generation begins, so all existing
 * workers become outdated. Otherwise only workers that were started from other settings become outdated. */
void generation_follow_settings(struct fleet *fleet);
/* Call for each worker that was found. If its generation is higher than all known ones, that becomes the
 * generation of the fleet. */
void generation_observe(struct fleet *fleet, uint64_t generation);

/* Returns true if a restart replaces the worker. After the restart is done, a worker of a generation before
 * it still has to leave: its command has started another process late, or it refused to be quiet. A worker
 * that only a reload has outdated stays. */
bool generation_is_replaced(const struct worker *worker);
/* Returns the highest generation that a restart began or that any worker or template has. A generation that a
 * reload began counts only once a worker or template was started in it. */
uint64_t generation_shown(const struct fleet *fleet);
/* Returns the number of starting and active workers that a reload has outdated; 0 if a restart has outdated
 * any. */
unsigned generation_outdated_by_reload(const struct fleet *fleet);
