/* SPDX-License-Identifier: MIT */
/* Runs after_exit for workers that are gone. */
#pragma once

#include "daemon/runtime/runtime.h"

struct exit_status;
struct worker;

/* Begins it for a worker that ended so, where its fleet has one. What becomes of it is logged alone. */
void after_exit_begin(struct runtime *runtime, const struct worker *worker, const struct exit_status *exit);

/* Is one of them under way? The end of sqmgr waits for it. */
bool after_exits_run(const struct runtime *runtime);

/* They go on, unobserved. */
void after_exits_forget(struct runtime *runtime);
