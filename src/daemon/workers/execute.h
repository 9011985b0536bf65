/* SPDX-License-Identifier: MIT */
/* Executes the actions of the plan, and observes their results. */
#pragma once

#include "daemon/runtime/runtime.h"

/* Returns the signal that asks the worker to exit once its jobs have ended. */
int execute_stop_signal(const struct worker *worker);
/* Executes one action. Returns false if the pass needs no further round because of it: the action was refused
 * or postponed, or its result arrives later, as for a fork and for ACTION_GO. */
bool execute_action(struct runtime *runtime, const struct action *action, usec_t now);
