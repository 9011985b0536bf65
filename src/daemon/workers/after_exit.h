/* SPDX-License-Identifier: MIT */
/* Runs the after_exit command for workers that have exited. */
#pragma once

#include "daemon/runtime/runtime.h"

struct exit_status;
struct worker;

/* Starts the command for an exited worker if its fleet has one. The result is only logged. */
void after_exit_begin(struct runtime *runtime, const struct worker *worker, const struct exit_status *exit);

/* True while a command runs: sqmgr must not end yet. */
bool after_exits_run(const struct runtime *runtime);

/* Stops watching the commands; they keep running. */
void after_exits_forget(struct runtime *runtime);
