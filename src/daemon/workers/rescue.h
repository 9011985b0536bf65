/* SPDX-License-Identifier: MIT */
/* Follows up the death of a worker: reads what it was running, names the job classes where the kernel's OOM
 * killer ended it, and has each job told of or put back. */
#pragma once

#include "daemon/runtime/runtime.h"

struct exit_status; /* model/exit_status.h */

/* The process that beat for worker under identity, NULL where that is not known, is dead: begins to learn
 * what it was running, where that was cut off, for rescue_jobs and where the kernel's OOM killer did it.
 * worker: as it was before, which is copied; its fleet is fleet, whatever it says itself. exit: how that very
 * process ended, as far as it is known. */
void rescue_begin(struct runtime *runtime, struct fleet *fleet, const struct worker *worker,
                  const char *identity, const struct exit_status *exit);
/* Is there one that the end of sqmgr should wait for? */
bool rescues_hold_the_end(const struct runtime *runtime, usec_t now);
/* A fleet that is no longer configured is needed still. */
bool rescues_need_removed(const struct runtime *runtime);
/* Gives them all up, whatever is under way. */
void rescues_forget(struct runtime *runtime);
