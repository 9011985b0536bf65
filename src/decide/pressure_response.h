/* SPDX-License-Identifier: MIT */
/* The response to memory pressure (pressure_limit): name the largest worker, ask workers to leave, and hold
 * back starts. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct pressure_reading;
struct worker;
struct world;

/* Records a reading of the kernel's pressure figures; NULL: they cannot be read. Updates the world at once;
 * the next plan acts on the result. */
void observe_pressure(struct world *world, const struct pressure_reading *reading, usec_t now);

/* Returns true if the worker is to leave because of memory pressure. */
bool pressure_response_applies(const struct worker *worker);
