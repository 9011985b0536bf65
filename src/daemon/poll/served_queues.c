/* SPDX-License-Identifier: MIT */
/* The queues that workers have reported to serve. */
#include "daemon/poll/served_queues.h"
#include "daemon/workers/process.h"
#include "frameworks/table.h"
#include "model/fleet.h"
#include "model/world.h"
#include <string.h>

const char *served_by(const struct worker *worker)
{
        const struct framework *framework = framework_of(worker->fleet->settings->traits);

        return worker->handle && worker->handle->slot && framework->queue_names
                       ? framework->queue_names(worker->handle->slot->info)
                       : NULL;
}

bool served_add_name(struct served_queues *served, const char *name)
{
        size_t length = strlen(name) + 1;

        if (queue_names_have(served->text, name))
                return true;
        if (served->n == QUEUES_NAMED_MAX || served->used + length >= sizeof(served->text))
                return false;
        memcpy(served->text + served->used, name, length);
        served->used += length;
        served->text[served->used] = '\0';
        served->n++;
        return true;
}

bool served_add(struct served_queues *served, const char *list)
{
        bool all = true;

        for (; list && *list != '\0'; list += strlen(list) + 1)
                all &= served_add_name(served, list);
        return all;
}

bool served_add_fleet(struct served_queues *served, const struct fleet *fleet)
{
        bool all = true;

        FLEET_FOREACH_WORKER(fleet, worker)
                if (worker->state == WORKER_ACTIVE)
                        all &= served_add(served, served_by(worker));
        return all;
}

void served_estimate(const struct link *link, struct queues *queues, usec_t now)
{
        if (!queues || !link->framework->traits->latency_estimated)
                return;
        _cleanup_free_ struct latency_flow *flows = calloc(queues->n + 1, sizeof(*flows));
        if (!flows)
                return;
        WORLD_FOREACH_FLEET(link->links->world, fleet) {
                struct served_queues served = {0};

                if (fleet->queue_link != link)
                        continue;
                (void)served_add_fleet(&served, fleet);
                latency_add(flows, queues, &fleet->work, served.text, now);
        }
        latency_judge(queues, flows, now);
}
