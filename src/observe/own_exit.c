/* SPDX-License-Identifier: MIT */
/* Workers that exit by themselves in good order; see the header. */
#include "observe/own_exit.h"
#include "base/parse.h"
#include "model/backoff.h"
#include "model/exit_status.h"
#include "model/names.h"
#include "model/rollout.h"
#include "model/start_failure.h"
#include "model/worker_facts.h"
#include "model/world.h"

bool worker_is_own_exit(const struct worker *worker, const struct exit_status *exit, usec_t now)
{
        return exit_status_is_success(exit) && worker->active_at != 0 &&
               (fleet_settings_write_heartbeats(worker->fleet->settings) ||
                !worker_is_failed_start(worker, usec_sub(now, worker->active_at)));
}

void observe_own_exit(struct worker *worker, usec_t now)
{
        struct fleet *fleet = worker->fleet;
        usec_t uptime = usec_sub(now, worker->active_at);
        char span[FORMAT_MAX];

        worker->reason = worker->state == WORKER_QUIET ? worker->reason : REASON_EXTERNAL;
        worker_event(worker, EVENT_GONE, " exited cleanly (status 0) without being asked, %s after %s",
                     format_duration(uptime, span, sizeof(span)),
                     fleet_settings_write_heartbeats(fleet->settings) ? "its first heartbeat" : "its start");
        if (worker_outdated(worker))
                rollout_observe_progress(fleet, now);
        if (worker->state == WORKER_QUIET)
                return;
        if (now < fleet->crash.next_at)
                fleet->crash.freed += !worker_is_failed_start(worker, uptime);
        else if (worker_is_failed_start(worker, uptime))
                fleet->crash.next_at = usec_add(now, BACKOFF_MIN_USEC);
}
