/* SPDX-License-Identifier: MIT */
/* Derives what the queues of a fleet demand; see the header. */
#include "autoscaling/demand_rules.h"
#include "autoscaling/autoscale_rules.h"
#include "model/counts.h"
#include "model/fleet.h"
#include "model/queues.h"

static double seconds(usec_t usec)
{
        return (double)usec / USEC_PER_SEC;
}

static void add_queues(const struct fleet *fleet, struct demand *demand)
{
        const struct queues *queues = autoscale_of(fleet)->queues;

        /* Before a worker has named its queues, the list is empty. */
        demand->waiting_known = demand->latency_known = queues && autoscale_of(fleet)->served;
        for (size_t i = 0; queues && i < queues->n; i++) {
                const struct queue *queue = &queues->list[i];

                if (queue->paused || queue->size == 0 || autoscale_target(fleet, queue->name) == 0)
                        continue;
                demand->waiting += queue->size;
                demand->latency_known &= queue->latency_known;
                demand->latency_seconds = MAX(demand->latency_seconds, seconds(queue->latency));
        }
        if (!demand->latency_known)
                demand->latency_seconds = 0;
}

static void add_backlog(const struct fleet *fleet, struct demand *demand)
{
        usec_t service = autoscale_of(fleet)->verdict.service;

        demand->backlog_known = demand->waiting_known && (demand->waiting == 0 || service > 0);
        if (demand->backlog_known)
                demand->backlog_seconds = (double)demand->waiting * seconds(service);
}

static bool has_verdict(const struct fleet *fleet)
{
        const struct autoscale *autoscale = autoscale_of(fleet);

        return autoscale->read_at != 0 && autoscale->verdict.cause != SCALING_HELD;
}

/* A fleet that is scaled to zero: nothing shows its threads, and it needs a worker as soon as a job waits. */
static bool has_no_workers(const struct fleet *fleet)
{
        return fleet_order(fleet) == ORDER_RUN && fleet_current_count(fleet) == 0;
}

void demand_derive(const struct fleet *fleet, struct demand *ret)
{
        const struct scaling_verdict *verdict = &autoscale_of(fleet)->verdict;

        *ret = (struct demand){0};
        add_queues(fleet, ret);
        add_backlog(fleet, ret);
        if (has_verdict(fleet)) {
                ret->needed_known = true;
                ret->needed = verdict->needed;
                ret->needed_threads = verdict->need;
        }
        if (has_no_workers(fleet) && ret->waiting_known) {
                ret->needed_known = true;
                ret->needed = MAX(ret->needed, (unsigned)(ret->waiting > 0));
                ret->needed_threads = MAX(ret->needed_threads, (double)ret->needed);
        }
}
