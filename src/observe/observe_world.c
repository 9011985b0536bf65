/* SPDX-License-Identifier: MIT */
/* Records observations of the machine and of Redis; see the header. */
#include "observe/observe_world.h"
#include "model/backoff.h"
#include "model/fleet.h"
#include "model/generation.h"
#include "model/names.h"
#include "model/world.h"

bool observe_clocks(struct world *world, usec_t monotonic, usec_t boottime, usec_t realtime)
{
        struct doubt *doubt = &world->doubt;
        int64_t boot_lag = (int64_t)(boottime - monotonic), real_lag = (int64_t)(realtime - monotonic);
        const char *why = NULL;

        if (doubt->due != 0) {
                if (llabs(boot_lag - doubt->boot_lag) > CLOCK_STEP_USEC)
                        why = "the machine was suspended";
                else if (llabs(real_lag - doubt->real_lag) > CLOCK_STEP_USEC)
                        why = "the system clock jumped";
                else if (monotonic > usec_add(doubt->due, settings_stall_usec(world->settings)))
                        why = "sqmgr was stalled";
        }
        if (doubt_steps_back(doubt, boottime, realtime))
                doubt->stepped_back_at = monotonic;
        if (doubt->due == 0 || llabs(real_lag - boot_lag - doubt->steady_lag) > CLOCK_STEP_USEC) {
                doubt->steady_since = boottime;
                doubt->steady_lag = real_lag - boot_lag;
        }
        doubt->boot_lag = boot_lag;
        doubt->real_lag = real_lag;
        doubt->due = usec_add(monotonic, world->settings->check_interval);
        if (!why)
                return false;
        doubt->since = monotonic;
        world_event(world, EVENT_TIME_DOUBT, NULL, NULL,
                    "%s; no worker is quieted or stopped before a fresh heartbeat", why);
        return true;
}

void observe_available_memory(struct world *world, uint64_t bytes)
{
        world->available_bytes = bytes;
}

void observe_oom_kills(struct world *world, uint64_t kills, usec_t now)
{
        if (world->oom_known && kills > world->oom_kills)
                world->oom_at = now;
        world->oom_known = true;
        world->oom_kills = kills;
}

void observe_server(struct fleet *fleet, enum reader_state state, usec_t now)
{
        bool up = state == READER_STATE_CONNECTED;
        /* A first connection says nothing about failures before this sqmgr started: Redis need not have been
         * down. */
        bool continued = fleet->continued;
        enum reader_state before = fleet->server;
        fleet->continued = false;
        fleet->server = state;
        if (fleet->redis_up == up)
                return;
        bool first = up && fleet->redis_at == 0;
        fleet->redis_up = up;
        fleet->redis_at = now;
        if (up && !continued)
                backoff_reset(&fleet->crash);
        if (first)
                return;
        bool database = fleet_settings_need_database(fleet->settings);
        enum event_kind down = database ? EVENT_DATABASE_DOWN : EVENT_REDIS_DOWN;
        fleet_event(fleet,
                    !up        ? down
                    : database ? EVENT_DATABASE_UP
                               : EVENT_REDIS_UP,
                    up ? ": %s is %s again" : ": %s is %s; workers are left as they are",
                    fleet_settings_server(fleet->settings),
                    up && before == READER_STATE_REFUSING ? "accepting writes" : reader_state_text(state));
}

void observe_saved(struct world *world, bool saved, usec_t now)
{
        if (saved)
                world->unsaved_since = 0;
        else if (world->unsaved_since == 0)
                world->unsaved_since = now;
}

void observe_failover(struct fleet *fleet, const char *from, const char *to)
{
        fleet_event(fleet, EVENT_REDIS_FAILOVER, ": Redis failed over from %s to %s", from, to);
}

void observe_unadopted(struct worker *worker)
{
        worker->state = WORKER_GONE;
}

void observe_ledger(struct world *world, bool durable)
{
        world->ledger_volatile = !durable;
}

void observe_hold(struct fleet *fleet, bool held, bool unknown)
{
        fleet->held = held;
        fleet->unknown = unknown;
}

void observe_generation(struct fleet *fleet, uint64_t generation)
{
        generation_observe(fleet, generation);
}
