/* SPDX-License-Identifier: MIT */
/* The consequences of a failed start: the next start waits, and a restart may halt. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "model/event.h"

struct exit_status;
struct fleet;
struct worker;

/* Writes how a worker, a template or a start of the fleet has failed into fleet->crash_last. Quotes the
 * launch error and the log tail of exit, if any; exit may be NULL. */
void start_failure_describe(struct fleet *fleet, const struct exit_status *exit, const char *format, ...)
        _printf_(3, 4);

/* Adds an event with fleet->crash_last and what it quotes. worker may be NULL. */
void start_failure_report(struct fleet *fleet, enum event_kind kind, const struct worker *worker);

/* Records that sqmgr itself could not start or watch a process, for lack of descriptors, memory or processes.
 * The next start waits. The release is not at fault, so neither the failed starts in a row nor a restart
 * count this failure. error: the errno. */
void start_failure_observe_shortage(struct fleet *fleet, int error, usec_t now);

/* Returns true if a worker that ended uptime after its first heartbeat delays the next start. */
bool worker_is_failed_start(const struct worker *worker, usec_t uptime);
/* Delays the next start of the fleet, longer for each failure in a row. */
void start_failure_back_off(struct fleet *fleet, usec_t now);
/* Records a failure of what was started at spawned_at in this generation, as described in fleet->crash_last.
 * Failures without Redis do not count against the release. failed_start: also delay the next start. */
void start_failure_observe(struct fleet *fleet, uint64_t generation, usec_t spawned_at, bool failed_start,
                           usec_t now);
