/* SPDX-License-Identifier: MIT */
/* Records the passing of time: resets or reports whatever has lasted long enough. */
#include "advice/leak.h"
#include "base/parse.h"
#include "model/counts.h"
#include "model/deadlines.h"
#include "model/describe.h"
#include "model/rollout.h"
#include "model/world.h"
#include "observe/observe.h"
#include "observe/observe_template.h"

static void crash_observe_time(struct fleet *fleet, usec_t now)
{
        /* Without failed starts, the delay of observe_own_exit() stays. */
        if (fleet->crash.count > 0 && now >= fleet_recovered_at(fleet))
                backoff_reset(&fleet->crash);
        FLEET_FOREACH_WORKER(fleet, worker)
                if (worker->state == WORKER_ACTIVE && worker->active_at >= fleet->churn.failed_at &&
                    now >= usec_add(worker->active_at, CHURN_USEC))
                        backoff_reset(&fleet->churn);
}

static void stale_observe_time(struct worker *worker, usec_t now)
{
        if (worker->heartbeat.stale_reported || worker->state > WORKER_QUIET ||
            worker_silent_usec(worker, now) <= worker_stale_usec(worker))
                return;
        worker->heartbeat.stale_reported = true;
        worker_event(worker, EVENT_STALE, ": no heartbeat for %s; kept, no signal sent",
                     FORMAT_DURATION(usec_sub(now, worker->heartbeat.changed_at)));
}

/* Records since when at least one worker is fresh, as proof that Redis accepts heartbeats. */
static void fresh_observe_time(struct fleet *fleet, usec_t now)
{
        unsigned fresh = FLEET_COUNT_WORKERS(fleet, worker,
                                             worker->state <= WORKER_QUIET && worker_fresh(worker, now));

        fleet->fresh_since = fresh == 0 ? 0 : fleet->fresh_since ?: now;
}

/* Hanging is the stage after stale. */
static void hang_observe_time(struct worker *worker, usec_t now)
{
        if (worker->heartbeat.hung || worker->state > WORKER_QUIET || !worker_silent_too_long(worker, now))
                return;
        worker->heartbeat.hung = true;
        worker_event(worker, EVENT_HUNG, " hung: no heartbeat for %s (hang_after); %s",
                     FORMAT_DURATION(usec_sub(now, worker->heartbeat.changed_at)),
                     worker->state == WORKER_ACTIVE ? "no longer counts as active"
                                                    : "its jobs have not finished");
}

/* Reports a crash loop once, if it keeps the fleet below its count, and Redis is up. */
static void loop_observe_time(struct fleet *fleet, usec_t now)
{
        struct backoff *crash = &fleet->crash;

        if (crash->loop_reported || crash->count < FLEET_CRASH_LOOP || now >= crash->next_at ||
            fleet->waits_for != WAIT_BACKOFF || !fleet->redis_up)
                return;
        crash->loop_reported = true;
        event_quote(
                fleet_event(
                        fleet, EVENT_CRASH_LOOP,
                        " is in a crash loop: %u failed starts in a row; retrying in %s; last failure: %s",
                        crash->count, FORMAT_DURATION(usec_sub(crash->next_at, now)), fleet->crash_last),
                &fleet->crash_quoted);
}

/* A place held by a boot, or by a drain without jobs, is soon free again. */
static bool wait_may_last(const struct fleet *fleet)
{
        if (fleet->waits_for == WAIT_MEMORY || fleet->waits_for == WAIT_FORK || fleet->waits_for == WAIT_HUNG)
                return true;
        if (fleet->waits_for != WAIT_PLACES)
                return false;
        return FLEET_COUNT_WORKERS(fleet, worker,
                                   worker_hangs(worker) ||
                                           (worker->heartbeat.busy > 0 && worker_is_retiring(worker))) > 0;
}

static void wait_observe_time(struct fleet *fleet, usec_t now)
{
        enum wait wait = wait_may_last(fleet) ? fleet->waits_for : WAIT_NONE;
        char text[512];

        if (wait != WAIT_NONE && wait != fleet->wait_reported)
                fleet_event(fleet, EVENT_PLACES_HELD, " %s", fleet_waits_for(fleet, now, text, sizeof(text)));
        if (wait != fleet->wait_reported)
                fleet->wait_at = now;
        fleet->wait_reported = wait;
}

void observe_time(struct world *world, usec_t now)
{
        WORLD_FOREACH_FLEET(world, fleet) {
                FLEET_FOREACH_WORKER(fleet, worker) {
                        stale_observe_time(worker, now);
                        hang_observe_time(worker, now);
                }
                fresh_observe_time(fleet, now);
                crash_observe_time(fleet, now);
                loop_observe_time(fleet, now);
                rollout_observe_time(fleet, now);
                wait_observe_time(fleet, now);
                template_observe_time(fleet, now);
                leak_observe_time(fleet, now);
        }
}
