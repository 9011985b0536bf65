/* SPDX-License-Identifier: MIT */
/* The model's names and sentences, as people and programs read them. */
#include "base/parse.h"
#include "model/fleet.h"
#include "model/world.h"
#include <stdio.h>
#include <string.h>

#define OLDEST_MAX 64

static const char *const state_names[] = {
        [WORKER_STARTING] = "starting", [WORKER_ACTIVE] = "active", [WORKER_QUIET] = "quiet",
        [WORKER_STOPPING] = "stopping", [WORKER_GONE] = "gone",
};
static_assert(ELEMENTSOF(state_names) == _WORKER_STATE_MAX, "a name for each state");

const char *worker_state_name(enum worker_state state)
{
        return state_names[state];
}

const char *worker_id(const char *fleet, unsigned index, char text[static WORKER_ID_MAX])
{
        snprintf(text, WORKER_ID_MAX, "%s/%u", fleet, index);
        return text;
}

static const char *const reason_names[] = {
        [REASON_NONE] = "none",         [REASON_MEMORY] = "memory",     [REASON_RESTART] = "restart",
        [REASON_OPERATOR] = "operator", [REASON_AGE] = "age",           [REASON_SCALE] = "scale",
        [REASON_EXTERNAL] = "external", [REASON_SHUTDOWN] = "shutdown", [REASON_CRASH] = "crash",
        [REASON_BOOT] = "boot",         [REASON_HUNG] = "hung",
};
static_assert(ELEMENTSOF(reason_names) == _REASON_MAX, "a name for each reason");

const char *reason_name(enum reason reason)
{
        return reason_names[reason];
}

static const char *const reason_texts[] = {
        [REASON_NONE] = "",
        [REASON_MEMORY] = "it holds more than its fleet allows",
        [REASON_RESTART] = "a restart puts new code in force",
        [REASON_OPERATOR] = "the operator asked for it",
        [REASON_AGE] = "it is older than max_age",
        [REASON_SCALE] = "there are more workers than wanted",
        [REASON_EXTERNAL] = "someone else quieted it",
        [REASON_SHUTDOWN] = "sqmgr is shutting down",
        [REASON_CRASH] = "it crashed",
        [REASON_BOOT] = "it did not come up in time",
        [REASON_HUNG] = "its beat has stopped for longer than hang_after",
};
static_assert(ELEMENTSOF(reason_texts) == _REASON_MAX, "a sentence for each reason");

const char *reason_text(enum reason reason)
{
        return reason_texts[reason];
}

static const char *const rollout_state_names[] = {
        [ROLLOUT_NONE] = "none",     [ROLLOUT_RUNNING] = "running", [ROLLOUT_DONE] = "done",
        [ROLLOUT_HALTED] = "halted", [ROLLOUT_ABORTED] = "aborted",
};
static_assert(ELEMENTSOF(rollout_state_names) == _ROLLOUT_STATE_MAX, "a name for each rollout state");

const char *rollout_state_name(enum rollout_state state)
{
        return rollout_state_names[state];
}

static const char *const order_names[] = {
        [ORDER_RUN] = "running",
        [ORDER_QUIET] = "quiet",
        [ORDER_STOP] = "stopped",
};
static_assert(ELEMENTSOF(order_names) == _FLEET_ORDER_MAX, "a name for each order");

const char *fleet_order_name(enum fleet_order order)
{
        return order_names[order];
}

static const char *const cause_names[] = {
        [CULPRITS_MEMORY] = "memory",
        [CULPRITS_OOM] = "oom",
};
static_assert(ELEMENTSOF(cause_names) == _CULPRITS_CAUSE_MAX, "a name for each cause");

const char *culprits_cause_name(enum culprits_cause cause)
{
        return cause_names[cause];
}

/* What follows the count of its running jobs: ", oldest 11min", or "" where that is not known. */
static const char *oldest_text(const struct worker *worker, usec_t now, char text[static OLDEST_MAX])
{
        usec_t oldest = worker_oldest_job_usec(worker, now);
        char span[FORMAT_MAX];

        text[0] = '\0';
        if (oldest == 0)
                return text;
        /* When it began is told in whole seconds. */
        format_duration(oldest - oldest % USEC_PER_SEC, span, sizeof(span));
        if (worker->busy == 1)
                snprintf(text, OLDEST_MAX, ", begun %s ago", span);
        else
                snprintf(text, OLDEST_MAX, ", oldest %s", span);
        return text;
}

static const char *jobs_text(const struct worker *worker, usec_t now, char *text, size_t size)
{
        char oldest[OLDEST_MAX];

        snprintf(text, size, "waits for %u running job%s to finish%s", worker->busy,
                 worker->busy == 1 ? "" : "s", oldest_text(worker, now, oldest));
        return text;
}

const char *worker_waits_for(const struct worker *worker, usec_t now, char *text, size_t size)
{
        char span[32];
        unsigned count = worker->waits_count;

        text[0] = '\0';
        switch (worker->waits_for) {
        case WAIT_NONE:
        case WAIT_PLACES:
        case WAIT_MEMORY:
        case WAIT_BACKOFF:
        case WAIT_ADOPTION:
        case _WAIT_MAX:
                break;
        case WAIT_FIRST_BEAT:
                snprintf(text, size, "waits for its first beat");
                break;
        case WAIT_READY_OTHERS:
                snprintf(text, size, "waits until %u more worker%s ready", count,
                         count == 1 ? " is" : "s are");
                break;
        case WAIT_JOBS:
                return jobs_text(worker, now, text, size);
        case WAIT_BEATS:
                snprintf(text, size, "waits for %u more beat%s to be proven idle", count,
                         count == 1 ? "" : "s");
                break;
        case WAIT_THREADS:
                snprintf(text, size, "waits for %u job thread%s to exit, or %u more beat%s", worker->threads,
                         worker->threads == 1 ? "" : "s", count, count == 1 ? "" : "s");
                break;
        case WAIT_EXIT:
                snprintf(text, size, "waits for it to exit");
                break;
        case WAIT_REDIS:
                snprintf(text, size, "waits for Redis");
                break;
        case WAIT_FRESH_BEAT:
                snprintf(text, size, "waits for a fresh beat");
                break;
        case WAIT_STALE:
                format_duration(usec_sub(now, worker->beat_at), span, sizeof(span));
                snprintf(text, size, "its beat stopped %s ago: it is kept, and nothing is done to it", span);
                break;
        case WAIT_HUNG:
                format_duration(usec_sub(now, worker->beat_at), span, sizeof(span));
                snprintf(text, size, "hangs: its beat stopped %s ago, it is kept but does not count", span);
                break;
        case WAIT_SIGNAL:
                snprintf(text, size, "cannot be signalled: %s",
                         worker->signal_error == ENOTSUP ? "it does not catch the quiet signal"
                                                         : strerrordesc_np(worker->signal_error));
                break;
        case WAIT_ELSEWHERE:
                snprintf(text, size, "beats elsewhere: check redis_url, namespace, host name");
                break;
        case WAIT_RELEASE:
                snprintf(text, size, "waits for a new worker to prove itself: the last one failed");
                break;
        }
        return text;
}

/* Since when it drains or hangs: one that never beat was never quiet. */
static usec_t drain_since(const struct worker *worker)
{
        if (worker_hangs(worker))
                return worker->beat_at;
        return worker->quiet_at != 0 ? worker->quiet_at : worker->state_at;
}

/* It takes a place, and no new jobs. */
static bool holds_place(const struct worker *worker)
{
        return worker->state == WORKER_QUIET || worker->state == WORKER_STOPPING || worker_hangs(worker);
}

/* The one of these that has held its place for longest. */
static const struct worker *longest_drain(const struct fleet *fleet)
{
        const struct worker *longest = NULL;

        for (size_t i = 0; i < fleet->n_workers; i++) {
                const struct worker *worker = fleet->workers[i];

                if (holds_place(worker) && (!longest || drain_since(worker) < drain_since(longest)))
                        longest = worker;
        }
        return longest;
}

static void places_text(const struct fleet *fleet, usec_t now, char *text, size_t size)
{
        const struct worker *longest = longest_drain(fleet);
        char span[32], oldest[OLDEST_MAX];

        if (!longest) {
                unsigned places = fleet_max_processes(fleet);

                snprintf(text, size, "waits for a place: %u of %u (max_processes) %s taken", places, places,
                         places == 1 ? "is" : "are");
                return;
        }
        unsigned draining = 0;
        for (size_t i = 0; i < fleet->n_workers; i++)
                draining += holds_place(fleet->workers[i]);
        format_duration(usec_sub(now, drain_since(longest)), span, sizeof(span));
        snprintf(text, size,
                 "waits for a place: %u of %u (max_processes) %s draining %sworker%s, %s (pid %d, %u "
                 "running job%s%s) for %s",
                 draining, fleet_max_processes(fleet), draining == 1 ? "is held by a" : "are held by",
                 fleet_count(fleet, now).hung > 0 ? "or hung " : "", draining == 1 ? "" : "s",
                 WORKER_ID(longest), (int)worker_pid(longest), longest->busy, longest->busy == 1 ? "" : "s",
                 oldest_text(longest, now, oldest), span);
}

const char *fleet_waits_for(const struct fleet *fleet, usec_t now, char *text, size_t size)
{
        char span[32], available[32];

        text[0] = '\0';
        switch (fleet->waits_for) {
        case WAIT_PLACES:
                places_text(fleet, now, text, size);
                break;
        case WAIT_MEMORY:
                format_size(fleet->world->available_bytes, available, sizeof(available));
                snprintf(text, size, "waits for memory: %s available is less than 1.25 x its median worker",
                         available);
                break;
        case WAIT_BACKOFF:
                format_duration(usec_sub(MAX(fleet->crash.next_at, fleet->churn.next_at), now), span,
                                sizeof(span));
                snprintf(text, size, "waits %s before the next start", span);
                break;
        case WAIT_REDIS:
                snprintf(text, size, "waits for Redis");
                break;
        case WAIT_HUNG:
                snprintf(text, size,
                         "waits until one of its workers beats: all are silent, or Redis does not take their "
                         "beats");
                break;
        case WAIT_RELEASE:
                snprintf(text, size, "waits for a new worker to prove itself: the last one failed");
                break;
        case WAIT_ADOPTION:
                snprintf(text, size, "waits to learn whether processes that it found are its workers");
                break;
        default:
                break;
        }
        return text;
}
