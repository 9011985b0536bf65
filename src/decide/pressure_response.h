/* SPDX-License-Identifier: MIT */
/* What is done about memory pressure (pressure_limit): who is named, who leaves for it, and what is not
 * started meanwhile. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct pressure_reading;
struct worker;
struct world;

/* The kernel's figures were read; NULL: they cannot be. What follows is in the world at once, and done by the
 * next plan. */
void observe_pressure(struct world *world, const struct pressure_reading *reading, usec_t now);

/* This one is to leave for it. */
bool pressure_response_applies(const struct worker *worker);
