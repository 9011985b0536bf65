/* SPDX-License-Identifier: MIT */
/* Records memory readings of a worker; see the header. */
#include "observe/observe_memory.h"
#include "advice/leak.h"
#include "base/parse.h"
#include "model/backoff.h"
#include "model/describe.h"
#include "model/world.h"

#define MEMORY_SAMPLES 3

static bool memory_is_over(const struct fleet_settings *settings, uint64_t bytes)
{
        return (settings->memory_threshold > 0 && bytes > settings->memory_threshold) ||
               (settings->memory_limit > 0 && bytes > settings->memory_limit);
}

/* Growth is measured from here on. A size over a limit does not move the mark: the growth still counts after
 * its job has ended. */
void observe_memory_mark(struct worker *worker, uint64_t bytes, usec_t now)
{
        /* The limits apply to the proportional share of a forked worker, which only a sample has. */
        bool over = worker->process.forked ? worker->memory.over_limit || worker->memory.over_samples > 0
                                           : memory_is_over(worker->fleet->settings, bytes);

        if (bytes == 0 || (worker->memory.mark_at != 0 && over))
                return;
        worker->memory.mark_bytes = bytes;
        worker->memory.mark_at = now;
}

/* since: the earliest time of the breach. */
static void worker_observe_breach(struct worker *worker, enum breach breach, usec_t since)
{
        if (breach <= worker->memory.breach)
                return;
        worker->memory.breach = breach;
        if (fleet_settings_list_jobs(worker->fleet->settings))
                worker->memory.breach_at = MAX(since, (usec_t)1);
}

static void worker_observe_over_threshold(struct worker *worker, uint64_t share, usec_t now)
{
        struct fleet *fleet = worker->fleet;
        const struct fleet_settings *settings = fleet->settings;
        char bytes[32], threshold[32];

        worker->memory.over_threshold = true;
        /* The first of the samples in a row was already over the threshold. */
        worker_observe_breach(worker, BREACH_THRESHOLD,
                              usec_sub(now, (MEMORY_SAMPLES - 1) * fleet->world->settings->check_interval));
        format_size(share, bytes, sizeof(bytes));
        format_size(settings->memory_threshold, threshold, sizeof(threshold));
        worker_event(worker, EVENT_MEMORY_OVER, " uses %s, over memory_threshold (%s)", bytes, threshold);
        /* A worker that exceeds the threshold while booting does so before its first heartbeat. */
        bool late = worker->active_at != 0 && usec_sub(now, worker->active_at) >= CHURN_USEC;
        if (worker->started_for != REASON_MEMORY || late)
                return;
        backoff_fail(&fleet->churn, &fleet->random, now);
        worker_event(
                worker, EVENT_MEMORY_CHURN,
                " replaced a worker over memory_threshold (%s), and exceeds it, too. Raise memory_threshold",
                threshold);
}

void observe_shared_memory(struct worker *worker, uint64_t bytes, uint64_t share, usec_t now)
{
        const struct fleet_settings *settings = worker->fleet->settings;

        worker->memory.bytes = bytes;
        worker->memory.read_at = now;
        leak_observe(worker, bytes, now);
        if (worker->memory.mark_at == 0 && worker->heartbeat.seen)
                observe_memory_mark(worker, bytes, now);
        bool over_limit = settings->memory_limit > 0 && share > settings->memory_limit;
        /* A limit below what a worker needs to boot must not cause churn. */
        if (over_limit && !worker->memory.over_limit && worker->state <= WORKER_ACTIVE &&
            (worker->active_at == 0 || usec_sub(now, worker->active_at) < CHURN_USEC))
                backoff_fail(&worker->fleet->crash, &worker->fleet->random, now);
        worker->memory.over_limit = over_limit;
        if (over_limit)
                worker_observe_breach(worker, BREACH_LIMIT, now);
        if (settings->memory_threshold == 0)
                worker->memory.over_threshold = false;
        bool over = settings->memory_threshold > 0 && share > settings->memory_threshold;
        worker->memory.over_samples = over ? worker->memory.over_samples + 1 : 0;
        if (worker->memory.over_samples >= MEMORY_SAMPLES && !worker->memory.over_threshold)
                worker_observe_over_threshold(worker, share, now);
}

void observe_memory(struct worker *worker, uint64_t bytes, usec_t now)
{
        observe_shared_memory(worker, bytes, bytes, now);
}

void observe_own_memory(struct worker *worker, uint64_t bytes)
{
        worker->memory.own_bytes = bytes;
}
