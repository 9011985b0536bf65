/* SPDX-License-Identifier: MIT */
/* Carries out what the planner decided, and observes what became of it. */
#pragma once

#include "daemon/runtime/crew.h"

/* Returns false where nothing came of it. */
bool execute_action(struct crew *crew, const struct action *action, usec_t now);
