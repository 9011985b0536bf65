/* SPDX-License-Identifier: MIT */
/* When a worker is given up, asked to exit or killed; see the header. */
#include "model/deadlines.h"
#include "model/worker_facts.h"
#include "model/world.h"

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
        bool expected = fleet->boot_heard;

        if (worker->process.shim_error != 0)
                return false;
        FLEET_FOREACH_WORKER(fleet, other)
                expected |= other->state != WORKER_GONE && worker_sends_heartbeats(other);
        return expected;
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
