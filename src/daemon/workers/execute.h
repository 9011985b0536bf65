/* SPDX-License-Identifier: MIT */
/* Executes the actions of the plan, and observes their results. */
#pragma once

#include "daemon/runtime/runtime.h"

/* Returns the signal that asks the worker to exit once its jobs have ended. */
int execute_stop_signal(const struct worker *worker);
/* Returns false if the action had no effect. */
bool execute_action(struct runtime *runtime, const struct action *action, usec_t now);
