/* SPDX-License-Identifier: MIT */
/* The consequences of a failed start; see the header. */
#include "model/start_failure.h"
#include "model/backoff.h"
#include "model/exit_status.h"
#include "model/fleet.h"
#include "model/rollout.h"
#include "model/world.h"
#include <stdarg.h>
#include <stdio.h>

/* A worker that was active for less than this delays the next start, however short its trial. */
#define FAILED_START_USEC (10 * USEC_PER_SEC)

void start_failure_describe(struct fleet *fleet, const struct exit_status *exit, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(fleet->crash_last, sizeof(fleet->crash_last), format, arguments);
        va_end(arguments);
        fleet->crash_quoted = (struct quoted){0};
        if (exit && exit->launch_error)
                fleet->crash_quoted = *exit->launch_error;
        if (exit && exit->log_tail)
                quoted_append(&fleet->crash_quoted, exit->log_tail);
        fleet->lines_token = exit ? exit->lines_token : 0;
}

void start_failure_report(struct fleet *fleet, enum event_kind kind, const struct worker *worker)
{
        event_quote(world_event(fleet->world, kind, fleet, worker, "%s", fleet->crash_last),
                    &fleet->crash_quoted);
}

bool worker_is_failed_start(const struct worker *worker, usec_t uptime)
{
        return uptime < MAX(FAILED_START_USEC, worker->fleet->settings->ready_after);
}

void start_failure_back_off(struct fleet *fleet, usec_t now)
{
        backoff_fail(&fleet->crash, &fleet->random, now);
}

void start_failure_observe_shortage(struct fleet *fleet, int error, usec_t now)
{
        backoff_fail(&fleet->shortage, &fleet->random, now);
        fleet->shortage_error = error;
}

void start_failure_observe(struct fleet *fleet, uint64_t generation, usec_t spawned_at, bool failed_start,
                           usec_t now)
{
        if (failed_start)
                start_failure_back_off(fleet, now);
        fleet->crash_last_apart = !failed_start;
        if (generation == fleet->generation && fleet->redis_up && fleet->redis_at <= spawned_at)
                rollout_observe_failure(fleet, now);
}
