/* SPDX-License-Identifier: MIT */
/* Reserved memory; see the header. */
#include "model/memory.h"
#include "model/deadlines.h"
#include "model/preload.h"
#include "model/world.h"

/* For this long after its first heartbeat a worker still grows: its first jobs load code and data. */
#define YOUNG_USEC (60 * USEC_PER_SEC)

/* True if memory was read since the worker is active. An earlier reading only shows how far it has booted. */
static bool is_known(const struct worker *worker)
{
        return worker->state == WORKER_ACTIVE && worker->memory.bytes > 0 &&
               worker->memory.read_at > worker->active_at;
}

/* Returns the memory that the machine gains when the worker ends: without shared memory, where that is known.
 */
static uint64_t taken_bytes(const struct worker *worker)
{
        return worker->memory.own_bytes > 0 ? worker->memory.own_bytes : worker->memory.bytes;
}

/* The median by counting: for each candidate, how many are smaller. A fleet is small, and this code runs only
 * when an extra process is due. Halving the range of bytes is therefore cheaper than sorting a copy. */
uint64_t memory_expected_bytes(const struct fleet *fleet)
{
        uint64_t low = 0, high = 0, most = 0;
        size_t known = 0;

        FLEET_FOREACH_WORKER(fleet, worker) {
                most = MAX(most, taken_bytes(worker));
                if (is_known(worker)) {
                        high = MAX(high, taken_bytes(worker));
                        known++;
                }
        }
        if (known == 0)
                return most;
        while (low < high) {
                uint64_t middle = low + (high - low) / 2;
                size_t within = 0;

                FLEET_FOREACH_WORKER(fleet, worker)
                        within += is_known(worker) && taken_bytes(worker) <= middle;
                if (within * 2 >= known)
                        high = middle;
                else
                        low = middle + 1;
        }
        return low;
}

/* True if memory has not been read since the worker was young or booting: it may grow beyond the last
 * reading. A worker without heartbeats counts as booting until it is given up, which happens only while Redis
 * is up. */
static bool is_growing(const struct worker *worker, usec_t now)
{
        const struct fleet_settings *settings = worker->fleet->settings;
        usec_t grown_at = worker_boot_deadline(worker);

        if (worker->state >= WORKER_STOPPING)
                return false;
        if (worker->process.heartbeat_pid != 0)
                grown_at = usec_add(worker->active_at, MAX(YOUNG_USEC, settings->ready_after));
        else if (!worker->fleet->redis_up)
                return true;
        return (worker->memory.read_at > 0 ? worker->memory.read_at : now) <= grown_at;
}

/* Returns the expected growth of loading templates. */
static uint64_t reserved_by_templates(const struct fleet *fleet)
{
        uint64_t expected = fleet_template_bytes(fleet), reserved = 0;

        FLEET_FOREACH_TEMPLATE(fleet, template)
                if (template->state == TEMPLATE_LOADING)
                        reserved += expected - MIN(expected, template->memory_bytes);
        return reserved;
}

uint64_t memory_reserved_bytes(const struct world *world, usec_t now)
{
        uint64_t reserved = 0;

        WORLD_FOREACH_FLEET(world, fleet) {
                uint64_t expected = 0;

                reserved += reserved_by_templates(fleet);
                FLEET_FOREACH_WORKER(fleet, worker) {
                        if (!is_growing(worker, now))
                                continue;
                        expected = expected > 0 ? expected : memory_expected_bytes(fleet);
                        reserved += expected - MIN(expected, taken_bytes(worker));
                }
        }
        return reserved;
}

bool memory_is_short(const struct world *world, uint64_t reserved, uint64_t expected)
{
        return world->available_bytes > 0 && world->available_bytes < reserved + expected + expected / 4;
}

bool memory_lacks(const struct fleet *fleet, usec_t now)
{
        const struct world *world = fleet->world;

        return world->available_bytes > 0 &&
               memory_is_short(world, memory_reserved_bytes(world, now), memory_expected_bytes(fleet));
}
