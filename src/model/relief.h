/* SPDX-License-Identifier: MIT */
/* What is done about memory pressure (pressure_limit): who is named, who leaves for it, and what is not
 * started meanwhile. */
#pragma once

#include "model/pressure.h"
#include "model/world.h"

/* The kernel's figures were read; NULL: they cannot be. What follows is in the world at once, and done by the
 * next plan. */
void observe_pressure(struct world *world, const struct pressure_reading *reading, usec_t now);

/* Memory is so short that no worker beyond the count is started, and none in the place of one that left for
 * it. */
static inline bool relief_holds(const struct world *world)
{
        return world->pressure.high && world->settings->pressure_limit > 0;
}

/* This one is to leave for it. */
bool relief_presses(const struct worker *worker);

/* The worker that holds the most of what no other shares; NULL: none is known to hold anything. */
const struct worker *relief_fattest(const struct world *world);
/* How high it is: "32% of the time something waits for memory (pressure_limit 20%), 410M of 16G are left".
 * Returns text. */
#define RELIEF_TEXT_MAX 192
const char *relief_text(const struct world *world, char text[static RELIEF_TEXT_MAX]);
