/* SPDX-License-Identifier: MIT */
/* Records the passing of time: resets or reports whatever has lasted long enough. */
#pragma once

#include "base/macro.h"

struct world;

/* Call before each plan: resets what has lasted long enough, and ends rollouts that are done or halt. */
void observe_time(struct world *world, usec_t now);
