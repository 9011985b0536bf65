/* SPDX-License-Identifier: MIT */
/* Records whether workers have loaded their shim (traits.shim). */
#pragma once

#include "base/macro.h"
#include <stdint.h>

struct fleet;
struct quoted;
struct worker;

/* A heartbeat of the worker: its own, or without a shim one that sqmgr made. */
void shim_observe_heartbeat(struct worker *worker, bool shimless);

/* A worker has crashed. Call before shim_observe_log_tail(). had_heartbeat: it has sent one. */
void shim_observe_crash(const struct worker *worker, bool had_heartbeat);
/* The log tail of the worker that crashed last; NULL: not known. Node.js ends at once if it cannot read a
 * file that it is to load: the next start omits the file, and the release has not failed. Returns true if the
 * log tail shows that. */
bool shim_observe_log_tail(struct fleet *fleet, const struct quoted *log_tail);
