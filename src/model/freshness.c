/* SPDX-License-Identifier: MIT */
/* Whether a heartbeat is recent enough to act on; see the header. */
#include "model/freshness.h"
#include "model/fleet.h"
#include "model/worker_facts.h"
#include "model/world.h"

usec_t worker_stale_usec(const struct worker *worker)
{
        const struct fleet *fleet = worker->fleet;

        return fleet->settings->traits->stale_usec + 2 * fleet->world->settings->check_interval;
}

usec_t worker_outlived_usec(const struct worker *worker)
{
        const struct settings *settings = worker->fleet->world->settings;
        usec_t unnoticed = settings->check_interval + settings_stall_usec(settings);

        return worker->fleet->settings->traits->stale_usec + unnoticed;
}

bool worker_fresh(const struct worker *worker, usec_t now)
{
        const struct fleet *fleet = worker->fleet;

        /* A status file that does not count shows that the worker has loaded its shim after all. */
        if (worker->process.shimless && worker->heartbeat.fault != HEARTBEAT_FAULT_NONE)
                return false;
        return worker->heartbeat.seen && !worker->heartbeat.hung && fleet->redis_up &&
               worker->heartbeat.changed_at >= fleet->redis_at &&
               worker->heartbeat.changed_at > fleet->world->doubt.since &&
               usec_sub(now, worker->heartbeat.changed_at) <= worker_stale_usec(worker);
}

usec_t worker_silent_usec(const struct worker *worker, usec_t now)
{
        const struct fleet *fleet = worker->fleet;

        if (!fleet->redis_up || !worker->heartbeat.seen || worker->process.shimless)
                return 0;
        return usec_sub(now,
                        MAX(worker->heartbeat.changed_at, MAX(fleet->redis_at, fleet->world->doubt.since)));
}

bool worker_silent_too_long(const struct worker *worker, usec_t now)
{
        usec_t hang_after = worker->fleet->settings->hang_after;

        return hang_after > 0 && worker_silent_usec(worker, now) > MAX(hang_after, worker_stale_usec(worker));
}

bool worker_trusted_since(const struct worker *worker, usec_t at)
{
        const struct fleet *fleet = worker->fleet;

        return at > fleet->world->doubt.since && at > fleet->redis_at && fleet->redis_up;
}

bool worker_is_deaf(const struct worker *worker)
{
        return worker->state == WORKER_ACTIVE && worker_trusted_since(worker, worker->deaf.found_at);
}

usec_t worker_ready_at(const struct worker *worker)
{
        return usec_add(worker->active_at, worker->fleet->settings->ready_after);
}

bool worker_ready(const struct worker *worker, usec_t now)
{
        return worker->state == WORKER_ACTIVE && now >= worker_ready_at(worker) && worker_fresh(worker, now);
}

bool worker_title_fresh(const struct worker *worker, usec_t now)
{
        const struct fleet *fleet = worker->fleet;

        return worker->process.elsewhere && worker->evidence.title_known && fleet->redis_up &&
               worker->evidence.title_at > fleet->world->doubt.since &&
               usec_sub(now, worker->evidence.title_at) <= 3 * fleet->world->settings->check_interval;
}

bool worker_title_ready(const struct worker *worker, usec_t now)
{
        return worker->state == WORKER_STARTING && worker_title_fresh(worker, now) &&
               now >= usec_add(worker->process.boot_seen_at, worker->fleet->settings->ready_after);
}
