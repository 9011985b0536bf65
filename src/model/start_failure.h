/* SPDX-License-Identifier: MIT */
/* What follows from a life that ended too soon, or never began: the next start waits, and a restart may halt.
 */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct exit_status;
struct fleet;

/* Writes how a worker, a template or a start of the fleet has failed into fleet->crash_last, with the log
 * tail of exit where that has one; exit may be NULL. */
void start_failure_describe(struct fleet *fleet, const struct exit_status *exit, const char *format, ...)
        _printf_(3, 4);

/* The next start of the fleet waits, longer with each in a row. */
void start_failure_back_off(struct fleet *fleet, usec_t now);
/* What was started at spawned_at, of this generation, has failed, as fleet->crash_last says. Those of a time
 * without Redis say nothing of the release. failed_start: starts wait, too. */
void start_failure_observe(struct fleet *fleet, uint64_t generation, usec_t spawned_at, bool failed_start,
                           usec_t now);
