/* SPDX-License-Identifier: MIT */
/* Workers that exit by themselves in good order, as at a limit of their own (--max-jobs): no failure. */
#pragma once

#include "model/worker.h"

struct exit_status;

/* Returns true if a worker that was not asked to exit ended so. Without heartbeats, only the time shows that
 * it was more than a failed start. */
bool worker_is_own_exit(const struct worker *worker, const struct exit_status *exit, usec_t now);
/* Records such an end. The next worker starts at once; but soon after the first heartbeat, only after
 * BACKOFF_MIN_USEC: a command that finds nothing to do (--burst) must not run in a busy loop. */
void observe_own_exit(struct worker *worker, usec_t now);
