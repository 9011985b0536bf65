/* SPDX-License-Identifier: MIT */
/* Estimates how long jobs wait; see the header. */
#include "model/latency.h"
#include "base/macro.h"
#include "model/queues.h"

void latency_count(struct latency_work *work, uint64_t ended, usec_t now)
{
        if (work->since[1] == 0) {
                work->since[1] = now;
                return;
        }
        if (usec_sub(now, work->since[1]) >= LATENCY_PART_USEC) {
                work->since[0] = work->since[1];
                work->ended[0] = work->ended[1];
                work->since[1] = now;
                work->ended[1] = 0;
        }
        work->ended[1] += ended;
        if (ended > 0)
                work->moved_at = now;
}

/* Returns jobs per second; a negative number: too little data. */
static double rate_of(const struct latency_work *work, usec_t now)
{
        usec_t since = work->since[0] ?: work->since[1], elapsed = usec_sub(now, since);

        if (since == 0 || elapsed < LATENCY_LEAST_USEC)
                return -1;
        return ((double)work->ended[0] + (double)work->ended[1]) * (double)USEC_PER_SEC / (double)elapsed;
}

void latency_add(struct latency_flow *flows, const struct queues *queues, struct latency_work *work,
                 const char *served, usec_t now)
{
        double rate = rate_of(work, now);
        bool serves = false, waits = false;

        for (size_t i = 0; i < queues->n; i++)
                if (queue_names_have(served, queues->list[i].name)) {
                        serves = true;
                        waits |= queues->list[i].size > 0;
                }
        if (!serves)
                return;
        if (!waits || usec_sub(now, work->read_at) > LATENCY_UNREAD_USEC)
                work->moved_at = now;
        work->read_at = now;
        for (size_t i = 0; i < queues->n; i++) {
                if (!queue_names_have(served, queues->list[i].name))
                        continue;
                flows[i].known |= rate >= 0;
                flows[i].rate += MAX(rate, 0.0);
                flows[i].moved_at = MAX(flows[i].moved_at, work->moved_at);
        }
}

void latency_judge(struct queues *queues, const struct latency_flow *flows, usec_t now)
{
        for (size_t i = 0; i < queues->n; i++) {
                struct queue *queue = &queues->list[i];
                const struct latency_flow *flow = &flows[i];
                double usec = flow->rate > 0 ? (double)queue->size / flow->rate * (double)USEC_PER_SEC
                                             : (double)usec_sub(now, flow->moved_at);

                queue->latency_known = queue->size == 0 || flow->known;
                queue->latency = queue->size == 0 ? 0 : (usec_t)MIN(usec, (double)LATENCY_MAX_USEC);
        }
}
