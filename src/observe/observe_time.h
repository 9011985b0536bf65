/* SPDX-License-Identifier: MIT */
/* Folds the passing of time into the model: what has lasted long enough is reset, or reported. */
#pragma once

#include "base/usec.h"

struct world;

/* Time has passed: resets what has lasted long enough, ends rollouts that are done or halt. Before each plan.
 */
void observe_time(struct world *world, usec_t now);
