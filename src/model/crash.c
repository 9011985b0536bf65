/* SPDX-License-Identifier: MIT */
/* The meaning of failed starts in a row; see the header. */
#include "model/crash.h"
#include "model/counts.h"
#include "model/fleet.h"

/* A worker that has been active for this long, and is ready, ends a row of failed starts. */
#define STABLE_USEC (60 * USEC_PER_SEC)

usec_t fleet_recovered_at(const struct fleet *fleet)
{
        usec_t active_at = USEC_INFINITY;

        FLEET_FOREACH_WORKER(fleet, worker)
                if (worker->state == WORKER_ACTIVE && worker->active_at >= fleet->crash.failed_at)
                        active_at = MIN(active_at, worker->active_at);
        return usec_add(active_at, MAX(STABLE_USEC, fleet->settings->ready_after));
}

usec_t fleet_next_start_at(const struct fleet *fleet, usec_t now)
{
        return fleet->waits_for == WAIT_BACKOFF && fleet->crash.next_at > now ? fleet->crash.next_at : 0;
}

enum crash_state fleet_crash_state(const struct fleet *fleet, usec_t now)
{
        struct fleet_counts counts = fleet_count(fleet, now);

        if (fleet->crash.count == 0)
                return CRASH_NONE;
        if (counts.active < fleet_target(fleet) || counts.starting > 0 ||
            fleet_next_start_at(fleet, now) != 0)
                return CRASH_FAILING;
        return fleet_recovered_at(fleet) != USEC_INFINITY ? CRASH_RECOVERING : CRASH_SETTLED;
}

static const char *const crash_state_names[] = {
        [CRASH_NONE] = "none",
        [CRASH_FAILING] = "failing",
        [CRASH_RECOVERING] = "recovering",
        [CRASH_SETTLED] = "settled",
};
DEFINE_ENUM_NAMES(crash_state_name, enum crash_state, _CRASH_STATE_MAX, crash_state_names)
