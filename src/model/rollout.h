/* SPDX-License-Identifier: MIT */
/* The generations of a fleet, its restarts and its failed starts. A restart begins a new generation. So does
 * a reload that changes what workers are started from; a reload that takes the change back returns to the
 * generation that was started from the same settings. */
#pragma once

#include "model/fleet.h"

struct exit_status;

/* How long the template of the previous release stays after a complete restart: a bad release usually shows
 * within minutes, and the template holds the memory of a loaded application. */
#define TEMPLATE_KEEP_USEC (10 * USEC_PER_MIN)

/* Starts a restart with a new generation: all existing workers become outdated. by, here and below: who
 * ordered it; NULL: nobody, or not known. */
void rollout_start(struct fleet *fleet, const struct orderer *by, usec_t now);
/* Call after the launch settings have changed: workers that were started from other settings become outdated.
 * A running restart then replaces all existing workers, and its timeout and count of failures begin anew. A
 * return ends. */
void rollout_outdate(struct fleet *fleet, usec_t now);
/* Aborts a running restart: no further old worker is quieted. why: copied. Does nothing if none runs. */
void rollout_abort(struct fleet *fleet, const char *why, const struct orderer *by);
/* Acknowledges a halted restart. Old and new workers stay as they are. Does nothing if none has halted. */
void rollout_acknowledge(struct fleet *fleet, const struct orderer *by);

/* Halts a running restart whose new workers were judged: returns to the generation before if its workers or
 * template are still there. why and quoted (NULL: none) are copied. */
void rollout_reject(struct fleet *fleet, const char *why, const struct quoted *quoted, usec_t now);
/* Returns true if the fleet can return to the generation before the last restart: its template is ready. */
bool rollout_can_return(const struct fleet *fleet);
/* Returns to the generation before the last restart; aborts a running one. Call only if
 * rollout_can_return(). Until the next restart, workers are forked from that template. If it ends before it
 * has replaced all workers, the return ends, and the restart counts as halted. */
void rollout_return(struct fleet *fleet, const struct orderer *by);
/* Returns true if no worker is started: the fleet has returned to a generation whose template is gone, so the
 * command may start another release, and workers of that generation still accept jobs. */
bool rollout_withholds(const struct fleet *fleet);
/* Returns true if workers of the generations that the fleet has returned from leave though nothing can
 * replace them: their jobs failed more often, the template is gone, and workers of the generation before
 * accept jobs. */
bool rollout_drops(const struct fleet *fleet);

/* Records progress: rollout_timeout counts from now. */
void rollout_observe_progress(struct fleet *fleet, usec_t now);
/* Call after that for a new worker that is kept unseen: halts the restart once no other new worker is left
 * that could show a boot. */
void rollout_observe_unseen(struct fleet *fleet, usec_t now);
/* Ends a complete restart. Halts a restart that made no progress for rollout_timeout. Call regularly. */
void rollout_observe_time(struct fleet *fleet, usec_t now);

/* Returns true if new workers failed and none has proven itself since: no further old worker is quieted (P7).
 */
bool rollout_is_held(const struct fleet *fleet);

/* Returns why the worker was to leave before it refused to be quiet; REASON_NONE: for nothing, or for a
 * restart that was halted or aborted, or for a return that has ended: neither replaces more workers. */
enum reason rollout_kept_reason(const struct worker *worker);

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

/* Records that fleet->generation was started from the current settings, and forgets the settings of all other
 * generations. Call for a new fleet, and after fleet->generation was set. */
void generation_begin(struct fleet *fleet);
/* Begins a new generation, higher than all before: all existing workers become outdated. */
void generation_restart(struct fleet *fleet);
/* Call for each worker that was found. If its generation is higher than all known ones, that becomes the
 * generation of the fleet. */
void generation_observe(struct fleet *fleet, uint64_t generation);

/* Returns true if a restart replaces the worker. After the restart is done, a worker of a generation before
 * it still has to leave: its command has started another process late, or it refused to be quiet. A worker
 * that only a reload has outdated stays. */
bool generation_is_replaced(const struct worker *worker);
/* Returns the highest generation that a restart began or that any worker or template has. A generation that a
 * reload began counts only once a worker or template was started in it. */
uint64_t generation_shown(const struct fleet *fleet);
/* Returns the number of starting and active workers that a reload has outdated; 0 if a restart has outdated
 * any. */
unsigned generation_outdated_by_reload(const struct fleet *fleet);

/* The next try is delayed longer after each failure in a row, with full jitter. A crash loop then costs
 * little, and many hosts do not retry in step. */

/* The bounds of the first and of the longest delays: a fault that ends soon costs little time, and one that
 * stays costs the machine one start of an application a minute. */
#define BACKOFF_MIN_USEC USEC_PER_SEC
#define BACKOFF_MAX_USEC USEC_PER_MIN
/* Records a failure at now, and delays the next try by a random time. The bound of that time is
 * BACKOFF_MIN_USEC, doubled for each earlier failure in a row, but at most BACKOFF_MAX_USEC. A next try that
 * is already due later stays so. random: the state of the generator, updated. */
void backoff_fail(struct backoff *backoff, uint64_t *random, usec_t now);
void backoff_reset(struct backoff *backoff);
