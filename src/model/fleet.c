/* SPDX-License-Identifier: MIT */
/* Adds, finds and frees the workers of a fleet. */
#include "model/fleet.h"

struct worker *fleet_add_worker(struct fleet *fleet, const struct worker *model)
{
        if (!ARRAY_RESERVE(fleet->workers, fleet->n_workers, fleet->workers_allocated))
                return NULL;
        struct worker *worker = calloc(1, sizeof(*worker));
        if (!worker)
                return NULL;
        *worker = *model;
        worker->fleet = fleet;
        size_t at = fleet->n_workers;
        while (at > 0 && fleet->workers[at - 1]->index > worker->index) {
                fleet->workers[at] = fleet->workers[at - 1];
                at--;
        }
        fleet->workers[at] = worker;
        fleet->n_workers++;
        return worker;
}

static bool is_forked_for(const struct fleet *fleet, unsigned index)
{
        FLEET_FOREACH_TEMPLATE(fleet, template)
                if (template->fork.index == index)
                        return true;
        return false;
}

unsigned fleet_next_index(const struct fleet *fleet, unsigned index, size_t *at)
{
        do {
                for (index++; *at < fleet->n_workers && fleet->workers[*at]->index <= index; (*at)++)
                        index += fleet->workers[*at]->index == index;
        } while (is_forked_for(fleet, index));
        return index;
}

unsigned fleet_free_index(const struct fleet *fleet)
{
        size_t at = 0;

        return fleet_next_index(fleet, 0, &at);
}

void fleet_reap(struct fleet *fleet, void (*release)(struct process *process))
{
        size_t kept = 0;

        FLEET_FOREACH_WORKER(fleet, worker) {
                if (worker->state != WORKER_GONE) {
                        fleet->workers[kept++] = worker;
                        continue;
                }
                if (worker->handle && release)
                        release(worker->handle);
                free(worker);
        }
        fleet->n_workers = kept;
}
