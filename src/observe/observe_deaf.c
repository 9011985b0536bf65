/* SPDX-License-Identifier: MIT */
/* Finds workers that send heartbeats and run no jobs; see the header. */
#include "observe/observe_deaf.h"
#include "base/parse.h"
#include "model/deadlines.h"
#include "model/world.h"

/* How often jobs must have been taken by others: once may have been a deletion by hand. */
#define TAKEN_MIN 3
/* The oldest job of a queue is another one if it is younger by more than readings differ in delay. */
#define MOVED_USEC USEC_PER_SEC

/* A queue in which jobs wait. */
struct flow {
        const char *name;
        bool taken;      /* a job was taken since the reading before */
        unsigned takers; /* workers that serve it and begin jobs */
};

/* A running job may hold the loop up, as in a worker with one thread. */
static bool loop_stands(const struct worker *worker, const struct heartbeat *heartbeat)
{
        usec_t hang_after = worker->fleet->settings->hang_after;

        return hang_after > 0 && heartbeat->looked_usec >= MAX(hang_after, worker_stale_usec(worker)) &&
               heartbeat->work_list_known && heartbeat->work_list_empty;
}

static void judge_loop(struct worker *worker, const struct heartbeat *heartbeat, usec_t now)
{
        if (worker->state != WORKER_ACTIVE || worker_is_deaf(worker))
                return;
        worker->deaf.found_at = now;
        worker->deaf.since = usec_sub(now, heartbeat->looked_usec);
        worker_event(worker, EVENT_DEAF, " is deaf: its loop that fetches jobs has not turned for %s; %s",
                     FORMAT_DURATION(heartbeat->looked_usec),
                     worker->fleet->settings->hang_action == HANG_KILL ? "replaced next" : "kept");
}

void deaf_observe_heartbeat(struct worker *worker, const struct heartbeat *heartbeat, usec_t now)
{
        struct worker_deafness *deaf = &worker->deaf;
        bool stood = deaf->loop_stands;

        deaf->loop_stands = loop_stands(worker, heartbeat);
        /* A worker that was stopped for a while shows that once as it continues. */
        if (deaf->loop_stands && stood)
                judge_loop(worker, heartbeat, now);
        if (deaf->loop_stands)
                return;
        if (heartbeat->busy > 0)
                deaf->took_at = now;
        if (heartbeat->busy == 0 && !stood)
                return;
        if (deaf->found_at != 0 && worker_is_deaf(worker))
                worker_event(worker, EVENT_RUNS_AGAIN, stood ? " fetches jobs again" : " runs jobs again");
        deaf->since = deaf->found_at = 0;
}

void deaf_observe_repeated(struct worker *worker, const struct heartbeat *heartbeat)
{
        if (heartbeat->busy > 0 && !worker_is_deaf(worker))
                worker->deaf.since = 0;
}

static bool is_heard(const struct worker *worker, usec_t now)
{
        return worker->state == WORKER_ACTIVE && worker_fresh(worker, now) && !worker->heartbeat.ambiguous;
}

static bool is_idle(const struct worker *worker, usec_t now)
{
        return is_heard(worker, now) && worker->heartbeat.busy == 0;
}

static bool takes(const struct worker *worker, usec_t now)
{
        return is_heard(worker, now) && worker->deaf.took_at != 0 &&
               usec_sub(now, worker->deaf.took_at) <= worker_stale_usec(worker);
}

static bool waits(const struct queue *queue)
{
        return queue->size > 0 && !queue->paused;
}

static bool was_taken(const struct deaf_reading *reading, const struct queue *queue, bool timed, usec_t now)
{
        QUEUES_FOREACH(reading->before, before) {
                if (strcmp(before->name, queue->name) != 0)
                        continue;
                return waits(before) &&
                       (queue->size < before->size ||
                        (timed && queue->latency_known && before->latency_known &&
                         usec_sub(now, queue->latency) >
                                 usec_sub(reading->before_at, before->latency) + MOVED_USEC));
        }
        return false;
}

static size_t find_flows(const struct fleet *fleet, const struct deaf_reading *reading, usec_t now,
                         struct flow flows[static DEAF_QUEUES_MAX])
{
        bool timed = !fleet->settings->traits->latency_estimated;
        size_t n = 0;

        for (size_t i = 0; i < reading->queues->n && n < DEAF_QUEUES_MAX; i++) {
                const struct queue *queue = &reading->queues->list[i];

                if (!waits(queue))
                        continue;
                flows[n] = (struct flow){.name = queue->name, .taken = was_taken(reading, queue, timed, now)};
                FLEET_FOREACH_WORKER(fleet, worker)
                        flows[n].takers +=
                                takes(worker, now) && queue_names_have(reading->served(worker), queue->name);
                n++;
        }
        return n;
}

static void judge(struct worker *worker, const char *served, const struct flow *flows, size_t n, usec_t now)
{
        const struct fleet_settings *settings = worker->fleet->settings;
        struct worker_deafness *deaf = &worker->deaf;
        bool waiting = false, taken = false;

        if (worker_is_deaf(worker))
                return;
        for (size_t i = 0; i < n; i++) {
                if (!queue_names_have(served, flows[i].name))
                        continue;
                waiting = true;
                taken |= flows[i].taken && flows[i].takers > takes(worker, now);
        }
        if (!waiting || !is_idle(worker, now) || !worker_trusted_since(worker, deaf->since)) {
                deaf->since = waiting && is_idle(worker, now) ? now : 0;
                deaf->taken = 0;
                return;
        }
        if (taken) {
                deaf->taken++;
                deaf->taken_at = now;
        }
        usec_t span = MAX(settings->hang_after, worker_stale_usec(worker));
        if (usec_sub(now, deaf->since) < span || deaf->taken < TAKEN_MIN ||
            usec_sub(now, deaf->taken_at) > span / 2)
                return;
        deaf->found_at = now;
        worker_event(worker, EVENT_DEAF,
                     " is deaf: ran no job for %s (hang_after), although jobs wait in a queue that it serves "
                     "and other workers run such jobs; %s",
                     FORMAT_DURATION(usec_sub(now, deaf->since)),
                     settings->hang_action == HANG_KILL ? "replaced next" : "kept");
}

void deaf_observe_queues(struct fleet *fleet, const struct deaf_reading *reading, usec_t now)
{
        struct flow flows[DEAF_QUEUES_MAX];
        const struct settings *settings = fleet->world->settings;
        usec_t latest = usec_add(reading->before_at,
                                 fleet->settings->traits->stale_usec + 2 * settings->check_interval);
        bool follows = reading->queues && reading->before && now <= latest;

        if (fleet->settings->hang_after == 0 || !fleet->settings->traits->reports_busy)
                return;
        size_t n = follows ? find_flows(fleet, reading, now, flows) : 0;
        FLEET_FOREACH_WORKER(fleet, worker)
                judge(worker, n > 0 ? reading->served(worker) : NULL, flows, n, now);
}

bool deaf_is_suspected(const struct fleet *fleet, usec_t now)
{
        bool idle = false, taken = false;

        if (fleet->settings->hang_after == 0 || !fleet->settings->traits->reports_busy ||
            !fleet->settings->traits->reports_queues)
                return false;
        FLEET_FOREACH_WORKER(fleet, worker) {
                bool takes_now = takes(worker, now);

                taken |= takes_now;
                idle |= !takes_now && is_idle(worker, now) &&
                        usec_sub(now, worker->active_at) > worker_stale_usec(worker);
        }
        return idle && taken;
}
