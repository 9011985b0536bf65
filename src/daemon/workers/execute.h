/* SPDX-License-Identifier: MIT */
/* Carries out what the planner decided, and observes what became of it. */
#pragma once

#include "daemon/runtime/runtime.h"

/* Returns false where nothing came of it. */
bool execute_action(struct runtime *runtime, const struct action *action, usec_t now);
