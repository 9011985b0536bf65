/* SPDX-License-Identifier: MIT */
/* Counts derived of a fleet; see the header. */
#include "model/counts.h"
#include "model/deadlines.h"
#include "model/world.h"

unsigned fleet_current_count(const struct fleet *fleet)
{
        const struct fleet_settings *settings = fleet->settings;

        /* A reload may have lowered the maximum since the order. */
        if (fleet->scale != 0)
                return MIN(fleet->scale, fleet_max_processes(fleet));
        if (!fleet_scales(fleet))
                return settings->active_process_count;
        return MIN(MAX(fleet->automatic_count, settings->active_process_count), settings->active_process_max);
}

unsigned fleet_max_processes(const struct fleet *fleet)
{
        if (fleet->settings->max_processes > 0)
                return fleet->settings->max_processes;
        /* The result also bounds an operator's count. A fleet with a count of 0 has places for one worker and
         * its replacement. */
        return 3 * MAX(MAX(fleet->settings->active_process_count, fleet->settings->active_process_max), 1U);
}

bool fleet_is_scaled(const struct fleet *fleet)
{
        if (fleet->scale == 0)
                return false;
        return fleet_scales(fleet) || fleet_current_count(fleet) != fleet->settings->active_process_count;
}

unsigned fleet_scale_min(const struct fleet *fleet)
{
        return fleet->settings->active_process_count == 0 && !fleet_scales(fleet) ? 0 : 1;
}

unsigned fleet_target(const struct fleet *fleet)
{
        if (fleet->world->shutting_down || fleet_order(fleet) != ORDER_RUN)
                return 0;
        return fleet_current_count(fleet);
}

bool fleet_sleeps(const struct fleet *fleet)
{
        return fleet_scales(fleet) && fleet->scale == 0 && !fleet->world->shutting_down &&
               fleet_order(fleet) == ORDER_RUN && fleet_current_count(fleet) == 0;
}

bool fleet_serves(const struct fleet *fleet)
{
        return fleet_target(fleet) > 0 || fleet_sleeps(fleet);
}

unsigned fleet_surge(const struct fleet *fleet)
{
        const struct share *surge = &fleet->settings->restart_surge;

        if (!surge->percent)
                return surge->value;
        return (unsigned)(((uint64_t)fleet_current_count(fleet) * surge->value + 99) / 100);
}

struct fleet_counts fleet_count(const struct fleet *fleet, usec_t now)
{
        struct fleet_counts counts = {0};

        FLEET_FOREACH_WORKER(fleet, worker) {
                if (worker->state == WORKER_GONE)
                        continue;
                counts.live++;
                counts.starting += worker->state == WORKER_STARTING;
                counts.elsewhere += worker->state == WORKER_STARTING && worker->process.elsewhere;
                counts.active += worker->state == WORKER_ACTIVE && !worker->heartbeat.hung;
                counts.hung += worker_hangs(worker);
                counts.quiet += worker->state == WORKER_QUIET;
                counts.stopping += worker->state == WORKER_STOPPING;
                counts.ready += worker_ready(worker, now);
                counts.outdated += worker->state <= WORKER_ACTIVE && worker_outdated(worker) &&
                                   !worker_hangs(worker) && !worker_is_unseen(worker);
                counts.unseen += worker_is_unseen(worker);
                counts.draining += worker_is_retiring(worker) && worker_outdated(worker);
                counts.busy += worker->heartbeat.busy;
                counts.memory_bytes += worker->memory.bytes;
        }
        return counts;
}

unsigned fleet_replaced(const struct fleet *fleet, usec_t now)
{
        struct fleet_counts counts = fleet_count(fleet, now);
        unsigned total = fleet->rollout.total, target = fleet_target(fleet);
        unsigned gone = total > counts.outdated ? total - counts.outdated : 0;

        if (fleet->rollout.state == ROLLOUT_DONE)
                return gone;
        /* An old worker that died counts as replaced only once a new worker is active. */
        unsigned current =
                FLEET_COUNT_WORKERS(fleet, worker,
                                    (worker->state == WORKER_ACTIVE || worker_title_ready(worker, now)) &&
                                            !worker_outdated(worker));
        return MIN(gone, current + (total > target ? total - target : 0));
}

bool fleet_is_limited(const struct fleet *fleet)
{
        unsigned limit = fleet->rollout.limit;

        return fleet->rollout.state == ROLLOUT_RUNNING && limit > 0 &&
               FLEET_COUNT_WORKERS(fleet, worker,
                                   worker->state <= WORKER_ACTIVE && !worker_outdated(worker) &&
                                           !worker_hangs(worker) &&
                                           worker->verdict.retire_reason == REASON_NONE) >= limit;
}

unsigned fleet_given_up(const struct fleet *fleet)
{
        return FLEET_COUNT_WORKERS(fleet, worker,
                                   worker->state <= WORKER_ACTIVE && worker_is_given_up(worker) &&
                                           !worker_hangs(worker));
}

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
