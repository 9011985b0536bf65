/* SPDX-License-Identifier: MIT */
/* Decides what to read of a worker at a poll; see the header. */
#include "model/poll_schedule.h"
#include "model/deadlines.h"
#include "model/freshness.h"
#include "model/idle_proof.h"
#include "model/worker_facts.h"
#include "model/world.h"
#include <limits.h>

/* Job threads start after the first heartbeat. The witness is collected within this time. */
#define THREADS_POLL_USEC (60 * USEC_PER_SEC)

/* Another process that sends heartbeats shows itself within this time. */
#define SIBLINGS_POLL_USEC (60 * USEC_PER_SEC)

/* True for a while after the worker is ready: a scan of the identities is expensive. */
static bool polls_siblings(const struct worker *worker, usec_t now)
{
        usec_t span = MAX(SIBLINGS_POLL_USEC, 4 * worker->fleet->world->settings->check_interval);

        return now >= worker_ready_at(worker) && (worker->evidence.siblings_polled_at == 0 ||
                                                  usec_sub(now, worker->evidence.siblings_polled_at) < span);
}

unsigned worker_poll_items(const struct worker *worker, bool fast, usec_t now)
{
        const struct fleet *fleet = worker->fleet;
        const struct traits *traits = fleet->settings->traits;
        bool idle = worker->heartbeat.seen && worker->heartbeat.busy == 0 && !worker_drains_to_exit(worker);
        bool elsewhere = worker->process.elsewhere;
        /* /proc shows another process. */
        const unsigned reachable = worker->process.remote ? POLL_HEARTBEAT | POLL_WORK_LIST : UINT_MAX;
        unsigned poll_items = 0;

        if (worker_is_remainder(worker) && !fast)
                poll_items |= POLL_HEARTBEAT | POLL_BOOT;
        switch (worker->state) {
        case WORKER_STARTING:
                if (!fast || !(worker->process.booted || worker->process.unseen))
                        poll_items |= POLL_HEARTBEAT | (traits->title_shutdown_usec ? POLL_ARGUMENTS : 0);
                if (!fast && (worker->process.unproven ||
                              (fleet->redis_up && now >= worker_boot_deadline(worker) && !elsewhere)))
                        poll_items |= POLL_BOOT;
                else if (!fast && fleet->redis_up && traits->has_title && !worker->process.booted)
                        poll_items |= POLL_ELSEWHERE;
                break;
        case WORKER_ACTIVE:
                if (fast)
                        return worker_may_take_job(worker, now) ? POLL_HEARTBEAT : 0;
                poll_items |= POLL_HEARTBEAT | (polls_siblings(worker, now) ? POLL_SIBLINGS : 0);
                if (traits->has_job_threads && !worker->evidence.threads_witness &&
                    usec_sub(now, worker->active_at) < THREADS_POLL_USEC)
                        poll_items |= POLL_THREADS;
                break;
        case WORKER_QUIET:
                /* The title shows a signal only after its process wakes up. */
                if (fast && (!idle || (traits->title_completes && worker->heartbeat.not_quiet_count > 0)))
                        return 0;
                poll_items |= POLL_HEARTBEAT | (traits->has_title && worker->heartbeat.seen ? POLL_TITLE : 0);
                if (idle && traits->has_work_list)
                        poll_items |= POLL_WORK_LIST;
                if (idle && worker->evidence.threads_witness)
                        poll_items |= POLL_THREADS;
                break;
        case WORKER_STOPPING:
                /* The stop signal came before this process was known: it may not have received one. */
                if (!fast && worker->orders.group_signaled)
                        poll_items |= POLL_HEARTBEAT;
                break;
        case WORKER_GONE:
        case _WORKER_STATE_MAX:
                return 0;
        }
        if (!fast && elsewhere && worker->state <= WORKER_QUIET)
                poll_items |= POLL_TITLE | (traits->has_job_threads ? POLL_THREADS : 0) |
                              (worker->evidence.peers_known ? 0 : POLL_PEERS);
        if (!fast) {
                poll_items |= POLL_MEMORY;
                if (worker->heartbeat.seen && !worker_fresh(worker, now))
                        poll_items |= POLL_TITLE;
        }
        return poll_items & reachable;
}

bool fleet_wants_fast_polls(const struct fleet *fleet, usec_t now)
{
        FLEET_FOREACH_TEMPLATE(fleet, template)
                if (template->fork.index != 0)
                        return true;
        if (!fleet->redis_up)
                return false;
        FLEET_FOREACH_WORKER(fleet, worker)
                if (worker_poll_items(worker, true, now) != 0)
                        return true;
        return false;
}
