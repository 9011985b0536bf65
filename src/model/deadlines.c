/* SPDX-License-Identifier: MIT */
/* When a worker is given up, asked to exit or killed; see the header. */
#include "model/deadlines.h"
#include "model/idle_proof.h"
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

/* A process that boots or serves jobs wakes up within this time. */
#define STILL_USEC (10 * USEC_PER_SEC)

usec_t fleet_forced_at(const struct fleet *fleet)
{
        const struct world *world = fleet->world;

        if (fleet->force || world->shutdown_now)
                return 0;
        return world->shutting_down ? usec_add(world->shutdown_at, world->settings->shutdown_timeout)
                                    : USEC_INFINITY;
}

usec_t worker_forced_at(const struct worker *worker)
{
        return worker->orders.forced ? 0 : fleet_forced_at(worker->fleet);
}

struct cut_off worker_cut_off(const struct worker *worker)
{
        const struct world *world = worker->fleet->world;
        const struct fleet_settings *settings = worker->fleet->settings;
        usec_t drain = settings->drain_timeout, forced = worker_forced_at(worker);
        struct cut_off cut = {.at = USEC_INFINITY};

        if (drain > 0 && worker->state == WORKER_QUIET)
                cut = (struct cut_off){usec_add(worker->orders.quiet_at, drain), drain, CUT_DRAIN_TIMEOUT};
        else if (settings->stop_bounded && worker->state == WORKER_QUIET)
                cut = (struct cut_off){usec_add(worker->orders.quiet_at, settings->stop_timeout),
                                       settings->stop_timeout, CUT_STOP_TIMEOUT};
        if (forced == 0)
                return (struct cut_off){0};
        if (forced < cut.at)
                cut = (struct cut_off){forced, world->settings->shutdown_timeout, CUT_SHUTDOWN_TIMEOUT};
        return cut;
}

usec_t boot_deadline(const struct fleet *fleet, usec_t begun_at)
{
        usec_t from = MAX(begun_at, MAX(fleet->redis_at, fleet->world->doubt.since));

        return usec_add(from, fleet->settings->boot_timeout);
}

usec_t worker_boot_deadline(const struct worker *worker)
{
        return boot_deadline(worker->fleet, worker->state_at);
}

/* Returns true if others of the fleet write records: without one the worker probably hangs as it boots, as a
 * bad release does. A start that omits the shim yields no record. */
static bool record_is_expected(const struct worker *worker)
{
        const struct fleet *fleet = worker->fleet;

        if (worker->process.shim_error != 0)
                return false;
        return fleet->boot_heard ||
               FLEET_COUNT_WORKERS(fleet, other,
                                   other->state != WORKER_GONE && worker_sends_heartbeats(other)) > 0;
}

bool worker_boot_has_failed(const struct worker *worker)
{
        const struct fleet *fleet = worker->fleet;
        usec_t still_since = worker->evidence.still_since;

        /* Without its shim the worker may run jobs, and wait for a long time while it does. */
        if (fleet->settings->traits->shim)
                return worker->process.unproven && record_is_expected(worker);
        /* The boots of others say nothing later about a worker that was kept before. */
        return ((fleet->boot_heard || fleet->boot_in_proc) && !worker->process.unseen) ||
               worker->process.unproven || !fleet_settings_write_heartbeats(fleet->settings) ||
               (still_since != 0 && worker->process.boot_polled_at >= usec_add(still_since, STILL_USEC));
}

bool worker_lacks_shim(const struct worker *worker, usec_t now)
{
        const struct fleet *fleet = worker->fleet;

        if (worker->process.unseen || !fleet->settings->traits->shim)
                return false;
        if (worker->process.shimless)
                return true;
        /* A file that does not count shows that something writes one. */
        return worker->state == WORKER_STARTING && !worker->heartbeat.seen && worker->last_uptime == 0 &&
               worker->heartbeat.fault == HEARTBEAT_FAULT_NONE && now >= worker_boot_deadline(worker) &&
               !record_is_expected(worker);
}

usec_t worker_stop_sent_at(const struct worker *worker)
{
        return worker->fleet->settings->stop_bounded && worker->orders.quiet_at != 0 ? worker->orders.quiet_at
                                                                                     : worker->orders.stop_at;
}

/* How long a signal through the server takes: one heartbeat may just have ended, and one may be lost. */
static usec_t delivery_usec(const struct worker *worker)
{
        return 2 * worker->fleet->settings->traits->sent_usec;
}

usec_t worker_repeat_stop_at(const struct worker *worker)
{
        const struct fleet *fleet = worker->fleet;

        if (!worker->process.remote || worker->state != WORKER_STOPPING || !fleet->redis_up ||
            !fleet->settings->traits->signals_by_server)
                return USEC_INFINITY;
        return usec_add(MAX(MAX(worker->orders.stop_at, worker->orders.stop_last_at), fleet->redis_at),
                        delivery_usec(worker));
}

usec_t worker_kill_at(const struct worker *worker)
{
        const struct fleet *fleet = worker->fleet;
        const struct world *world = fleet->world;
        usec_t from = MAX(MAX(worker_stop_sent_at(worker), worker->orders.killed_at), world->doubt.since);

        if (!world->shutting_down && !fleet->force && !worker->orders.forced)
                from = MAX(from, fleet->redis_at);
        usec_t delivery = worker->process.remote ? delivery_usec(worker) : 0;
        return usec_add(from, usec_add(fleet->settings->stop_timeout, delivery));
}

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

/* The items that polls may read of a worker, by its state. */
static const struct {
        unsigned regular, fast;
} poll_items[_WORKER_STATE_MAX] = {
        [WORKER_STARTING] = {POLL_HEARTBEAT | POLL_MEMORY | POLL_THREADS | POLL_TITLE | POLL_BOOT |
                                     POLL_ARGUMENTS | POLL_PEERS | POLL_ELSEWHERE,
                             POLL_HEARTBEAT | POLL_ARGUMENTS},
        [WORKER_ACTIVE] = {POLL_HEARTBEAT | POLL_MEMORY | POLL_THREADS | POLL_TITLE | POLL_SIBLINGS |
                                   POLL_PEERS,
                           POLL_HEARTBEAT},
        [WORKER_QUIET] = {POLL_HEARTBEAT | POLL_WORK_LIST | POLL_MEMORY | POLL_THREADS | POLL_TITLE |
                                  POLL_BOOT | POLL_PEERS,
                          POLL_HEARTBEAT | POLL_WORK_LIST | POLL_THREADS | POLL_TITLE},
        [WORKER_STOPPING] = {POLL_HEARTBEAT | POLL_MEMORY | POLL_TITLE | POLL_BOOT, 0},
};

/* Heartbeats, title and threads are to show that the worker runs no job. */
static bool is_to_be_idle(const struct worker *worker)
{
        return worker->state == WORKER_QUIET && worker->heartbeat.seen && worker->heartbeat.busy == 0 &&
               !worker_drains_to_exit(worker);
}

/* Returns true if a fast poll may read what the worker waits for. */
static bool polls_fast(const struct worker *worker, usec_t now)
{
        if (worker->state == WORKER_STARTING)
                return !worker->process.booted && !worker->process.unseen;
        if (worker->state == WORKER_ACTIVE)
                return worker_may_take_job(worker, now);
        /* The title shows a signal only after its process wakes up. */
        return is_to_be_idle(worker) &&
               (!worker->fleet->settings->traits->title_completes || worker->heartbeat.not_quiet_count == 0);
}

/* Returns true if there is a reason to read the item of a worker in whose state it may be read. */
static bool needs_item(const struct worker *worker, enum poll_item item, bool fast, usec_t now)
{
        const struct fleet *fleet = worker->fleet;
        const struct traits *traits = fleet->settings->traits;
        bool elsewhere = worker->process.elsewhere && worker->state <= WORKER_QUIET;

        switch (item) {
        case POLL_HEARTBEAT:
                /* A stop signal before this process was known may not have reached it. */
                return worker->state <= WORKER_QUIET || worker->orders.group_signaled ||
                       worker_is_remainder(worker);
        case POLL_WORK_LIST:
                return traits->has_work_list && is_to_be_idle(worker);
        case POLL_THREADS:
                if (worker->state == WORKER_ACTIVE && !worker->evidence.threads_witness &&
                    usec_sub(now, worker->active_at) < THREADS_POLL_USEC)
                        return traits->has_job_threads;
                return (elsewhere && traits->has_job_threads) ||
                       (worker->evidence.threads_witness && is_to_be_idle(worker));
        case POLL_TITLE:
                return elsewhere ||
                       (worker->heartbeat.seen && ((worker->state == WORKER_QUIET && traits->has_title) ||
                                                   (!fast && !worker_fresh(worker, now))));
        case POLL_BOOT:
                if (worker->state != WORKER_STARTING)
                        return worker_is_remainder(worker);
                return worker->process.unproven ||
                       (fleet->redis_up && now >= worker_boot_deadline(worker) && !elsewhere);
        case POLL_ELSEWHERE:
                return fleet->redis_up && traits->has_title && !worker->process.booted &&
                       !needs_item(worker, POLL_BOOT, fast, now);
        case POLL_ARGUMENTS:
                return traits->title_shutdown_usec;
        case POLL_SIBLINGS:
                return polls_siblings(worker, now);
        case POLL_PEERS:
                return elsewhere && !worker->evidence.peers_known;
        default:
                return true;
        }
}

unsigned worker_poll_items(const struct worker *worker, bool fast, usec_t now)
{
        unsigned items = fast ? poll_items[worker->state].fast : poll_items[worker->state].regular;

        /* /proc shows another process. */
        if (worker->process.remote)
                items &= POLL_HEARTBEAT | POLL_WORK_LIST;
        if (fast && !polls_fast(worker, now))
                return 0;
        for (unsigned item = 1; item <= items; item <<= 1)
                if ((items & item) && !needs_item(worker, item, fast, now))
                        items &= ~item;
        return items;
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
