/* SPDX-License-Identifier: MIT */
/* The generations of a fleet. A restart begins a new one. So does a reload that changes what workers are
 * started from; a reload that takes the change back returns to the generation that was started from the same
 * settings. */
#pragma once

#include "model/fleet.h"

/* The fleet is new, or its generation was set from outside: its generation is that of its settings. */
void generation_begin(struct fleet *fleet);
/* A restart: all existing workers become outdated. */
void generation_restart(struct fleet *fleet);
/* The launch settings have changed. During a restart, all existing workers become outdated; otherwise those
 * that were started from other settings. */
void generation_follow_settings(struct fleet *fleet);
/* A worker of this generation was found. A later one than all known becomes the fleet's. */
void generation_observe(struct fleet *fleet, uint64_t generation);

/* Returns the latest generation that any worker or restart has: a reload alone does not count. */
uint64_t generation_shown(const struct fleet *fleet);
/* Returns the number of starting and active workers that a reload has outdated; 0 if a restart has outdated
 * any. */
unsigned generation_outdated_by_reload(const struct fleet *fleet);
