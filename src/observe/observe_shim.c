/* SPDX-License-Identifier: MIT */
/* Records whether workers have loaded their shim; see the header. */
#include "observe/observe_shim.h"
#include "model/describe.h"
#include "model/world.h"
#include <string.h>

void shim_observe_heartbeat(struct worker *worker, bool shimless)
{
        struct fleet *fleet = worker->fleet;
        char why[WORKER_SHIMLESS_MAX];

        if (worker->process.shimless == shimless)
                return;
        worker->process.shimless = shimless;
        if (!shimless || fleet->shimless_reported)
                return;
        fleet->shimless_reported = true;
        worker_event(worker, EVENT_SHIM_NOT_LOADED, " has written no record within boot_timeout: %s",
                     worker_shimless_text(worker, why));
}

void shim_observe_crash(const struct worker *worker, bool had_heartbeat)
{
        worker->fleet->shim_tried =
                (had_heartbeat && !worker->process.shimless) || worker->process.shim_error != 0
                        ? 0
                        : worker->generation;
}

bool shim_observe_log_tail(struct fleet *fleet, const struct quoted *log_tail)
{
        const struct shim *shim = fleet->settings->traits->shim;

        if (!shim || !shim->refused || !log_tail || fleet->shim_tried != fleet->generation ||
            !quoted_contains(log_tail, shim->refused) ||
            !quoted_contains(log_tail, strrchr(shim->file, '/') + 1))
                return false;
        if (fleet->shim_refused != fleet->generation)
                fleet_event(fleet, EVENT_SHIM_NOT_LOADED,
                            ": a worker did not start with sqmgr's '%s' (%s): the next one starts without it",
                            shim->file, shim->refused);
        fleet->shim_refused = fleet->generation;
        return true;
}
