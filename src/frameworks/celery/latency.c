/* SPDX-License-Identifier: MIT */
/* Estimates latencies from rates; see the header. */
#include "frameworks/celery/latency.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A queue that was not read for longer may have been empty meanwhile. */
#define UNREAD_USEC (2 * USEC_PER_MIN)

/* The progress of the consumers of one queue. */
struct flow {
        bool known;
        double rate; /* tasks per second */
        usec_t begun_at;
};

static int compare(const void *name, const void *queue)
{
        return strcmp(name, ((const struct queue *)queue)->name);
}

static void add_consumer(struct flow *flows, const struct queues *queues, const struct celery_node *node,
                         usec_t now)
{
        double rate = celery_work_rate(&node->work, now);

        for (const char *name = node->queues; name && *name != '\0'; name += strlen(name) + 1) {
                const struct queue *queue =
                        bsearch(name, queues->list, queues->n, sizeof(*queues->list), compare);

                if (!queue)
                        continue;
                struct flow *flow = &flows[queue - queues->list];
                flow->known |= rate >= 0;
                flow->rate += MAX(rate, 0.0);
                flow->begun_at = MAX(flow->begun_at, node->work.begun_at);
        }
}

static struct celery_wait *find_wait(struct celery_waits *waits, const char *name, usec_t now)
{
        struct celery_wait *oldest = &waits->list[0];

        FOREACH_ELEMENT(wait, waits->list) {
                if (wait->read_at != 0 && strcmp(wait->name, name) == 0) {
                        if (usec_sub(now, wait->read_at) > UNREAD_USEC)
                                wait->since = now;
                        return wait;
                }
                if (wait->read_at < oldest->read_at)
                        oldest = wait;
        }
        *oldest = (struct celery_wait){.since = now};
        snprintf(oldest->name, sizeof(oldest->name), "%s", name);
        return oldest;
}

static void judge(struct celery_waits *waits, struct queue *queue, const struct flow *flow, usec_t now)
{
        struct celery_wait *wait = find_wait(waits, queue->name, now);

        wait->read_at = now;
        wait->since = MAX(wait->since, flow->begun_at);
        queue->latency_known = flow->known;
        if (!flow->known)
                return;
        double usec = flow->rate > 0 ? (double)queue->size / flow->rate * (double)USEC_PER_SEC
                                     : (double)usec_sub(now, wait->since);
        queue->latency = (usec_t)MIN(usec, (double)CELERY_LATENCY_MAX);
}

void celery_waits_forget(struct celery_waits *waits)
{
        *waits = (struct celery_waits){.nodes = waits->nodes};
}

static void forget(struct celery_waits *waits, const char *name)
{
        FOREACH_ELEMENT(wait, waits->list)
                if (strcmp(wait->name, name) == 0)
                        *wait = (struct celery_wait){0};
}

void celery_waits_judge(struct celery_waits *waits, struct queues *queues, usec_t now)
{
        struct flow *flows = calloc(queues->n + 1, sizeof(*flows));

        CELERY_NODES_FOREACH(waits->nodes, node)
        if (flows && queues->n > 0 && celery_node_is_heard(node, now))
                add_consumer(flows, queues, node, now);
        for (size_t i = 0; i < queues->n; i++) {
                struct queue *queue = &queues->list[i];

                if (queue->size == 0) {
                        queue->latency_known = true;
                        forget(waits, queue->name);
                } else if (flows) {
                        judge(waits, queue, &flows[i], now);
                }
        }
        free(flows);
}
