/* SPDX-License-Identifier: MIT */
/* The response to memory pressure; see the header. */
#include "decide/pressure_response.h"
#include "base/parse.h"
#include "model/describe.h"
#include "model/freshness.h"
#include "model/memory.h"
#include "model/names.h"
#include "model/worker_facts.h"
#include "model/world.h"
#include <stdio.h>

#define HUNDREDTHS 100

bool pressure_response_applies(const struct worker *worker)
{
        return worker->orders.pressed && pressure_response_holds(worker->fleet->world);
}

/* Returns true if another worker of the fleet is active. */
static bool has_peer(const struct worker *worker)
{
        const struct fleet *fleet = worker->fleet;

        FLEET_FOREACH_WORKER(fleet, other)
                if (other != worker && other->state == WORKER_ACTIVE && !other->heartbeat.hung &&
                    !other->orders.pressed && !other->orders.quiet)
                        return true;
        return false;
}

/* Returns true if the worker may leave: its jobs are known (P5), and another worker can take over. */
static bool may_leave(const struct worker *worker, usec_t now)
{
        return worker->state == WORKER_ACTIVE && !worker->orders.pressed && !worker->orders.quiet &&
               !worker->heartbeat.hung && worker->heartbeat.seen && worker_fresh(worker, now) &&
               fleet_order(worker->fleet) == ORDER_RUN && has_peer(worker);
}

/* Returns the worker with the most unshared memory; NULL: no memory is known. now: consider only workers that
 * may leave; 0: consider all. */
static struct worker *largest_worker(struct world *world, usec_t now)
{
        struct worker *most = NULL;

        WORLD_FOREACH_FLEET(world, fleet)
                FLEET_FOREACH_WORKER(fleet, worker) {
                        uint64_t bytes = memory_taken_bytes(worker);

                        if (worker->state != WORKER_GONE && bytes > (most ? memory_taken_bytes(most) : 0) &&
                            (now == 0 || may_leave(worker, now)))
                                most = worker;
                }
        return most;
}

static void report_begun(struct world *world)
{
        const struct worker *most = largest_worker(world, 0);
        char text[PRESSURE_RESPONSE_TEXT_MAX], bytes[FORMAT_MAX], who[WORKER_ID_MAX + 96] = "";

        if (most)
                snprintf(who, sizeof(who), "; largest worker: %s (pid %d), %s", WORKER_ID(most),
                         (int)worker_pid(most), format_size(memory_taken_bytes(most), bytes, sizeof(bytes)));
        world_event(world, EVENT_MEMORY_PRESSURE, NULL, NULL,
                    "memory pressure: %s%s. No worker beyond the count is started until the pressure ends",
                    pressure_response_text(world, text), who);
}

/* Allows replacements again; workers that have not left yet stay. */
static void end(struct world *world)
{
        WORLD_FOREACH_FLEET(world, fleet) {
                fleet->places_left = 0;
                FLEET_FOREACH_WORKER(fleet, worker)
                        if (worker->state <= WORKER_ACTIVE)
                                worker->orders.pressed = false;
        }
}

static void forget(struct world *world, const char *why)
{
        if (world->pressure.high)
                world_event(world, EVENT_MEMORY_EASED, NULL, NULL, "%s", why);
        world->pressure = (struct pressure){0};
        end(world);
}

void observe_pressure(struct world *world, const struct pressure_reading *reading, usec_t now)
{
        const struct settings *settings = world->settings;

        if (settings->pressure_limit == 0 || !reading) {
                forget(world,
                       reading ? "memory pressure is no longer monitored (pressure_limit none); extra "
                                 "workers may start again"
                               : "memory pressure can no longer be read; extra workers may start again");
                return;
        }
        world->pressure_reading = *reading;
        switch (pressure_observe(&world->pressure, reading, settings->pressure_limit * HUNDREDTHS, now)) {
        case PRESSURE_BEGAN:
                report_begun(world);
                break;
        case PRESSURE_ENDED:
                world_event(world, EVENT_MEMORY_EASED, NULL, NULL,
                            "memory pressure has ended; extra workers may start again");
                end(world);
                break;
        case PRESSURE_SAME:
                break;
        }
        if (settings->pressure_action != PRESSURE_QUIET || world->shutting_down ||
            !pressure_acts(&world->pressure, reading, now))
                return;
        struct worker *worker = largest_worker(world, now);
        if (worker) {
                worker->orders.pressed = true;
                world->pressure.acted_at = now;
        }
}
