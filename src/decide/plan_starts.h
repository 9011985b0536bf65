/* SPDX-License-Identifier: MIT */
/* Decides which workers are started, and which templates are loaded and ended. */
#pragma once

#include "decide/round.h"

/* Rule 1: starts workers. Sets what the fleet waits for. */
void plan_starts(struct round *round);
/* Loads, ends and kills templates. Call after plan_starts(). */
void plan_templates(struct round *round);
