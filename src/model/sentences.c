/* SPDX-License-Identifier: MIT */
/* The model's names and sentences, as people and programs read them. */
#include "base/parse.h"
#include "model/fleet.h"
#include "model/world.h"
#include <stdio.h>
#include <string.h>
#include <syslog.h>

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

/* The journal's MESSAGE_ID of a kind, which contrib/systemd/sqmgr.catalog explains, is its name for ever: a
 * new kind gets one from `systemd-id128 new`. */
static const struct {
        const char *name;
        int level;
        const char *message_id;
} event_kinds[] = {
        [EVENT_STARTED] = {"started", LOG_INFO, "78686634112f4ad58ae6407cc90dac35"},
        [EVENT_START_FAILED] = {"start-failed", LOG_ERR, "0310cd154d5b4f55ba5a35532692f7c4"},
        [EVENT_ACTIVE] = {"active", LOG_INFO, "7070f04480864a02886b30b796dff9cf"},
        [EVENT_QUIET] = {"quiet", LOG_INFO, "e61b8260f12b4e0eb33845f866792b4e"},
        [EVENT_STOPPING] = {"stopping", LOG_INFO, "43333acd92834f3eac49bebef6c4a43c"},
        [EVENT_KILLED] = {"killed", LOG_ERR, "81b583669a6e453aad79ddd9043ce3a3"},
        [EVENT_GONE] = {"gone", LOG_INFO, "7085476f35e341da9e7876748d6b9401"},
        [EVENT_CRASHED] = {"crashed", LOG_ERR, "bc8d0e71c8714b38b839514283dc4ec5"},
        [EVENT_CRASH_LOOP] = {"crash-loop", LOG_ERR, "5d477ad320074d14b700ba9ce03c0a96"},
        [EVENT_LAST_LINES] = {"last-lines", LOG_ERR, "9dea328e8e9646b492aa0a7dec099546"},
        [EVENT_BOOT_TIMEOUT] = {"boot-timeout", LOG_ERR, "c38f400a3ed74ed1abce87602dc8379c"},
        [EVENT_ELSEWHERE] = {"beats-elsewhere", LOG_WARNING, "6853119b51e94a2893390835f39aaad3"},
        [EVENT_STALE] = {"stale", LOG_WARNING, "0e75bf363e904e1b9e47b8a90bf13ab9"},
        [EVENT_HUNG] = {"hung", LOG_ERR, "bf6d729e74174e7998990725e3ff9a20"},
        [EVENT_BEATS_AGAIN] = {"beats-again", LOG_INFO, "4b8d8ba0514d4ca39b2528edc4204e34"},
        [EVENT_MEMORY_OVER] = {"memory-over", LOG_INFO, "74d57ea7dd82419f8338d88699287616"},
        [EVENT_MEMORY_CHURN] = {"memory-churn", LOG_WARNING, "2bfae3c2b48e4f74be20be2a41412e86"},
        /* As memory-over is: sqmgr sees to a breach itself, and the death that it explains is told as an
           error. */
        [EVENT_CULPRITS] = {"culprits", LOG_INFO, "5b832976107547ae96a8672c37102012"},
        [EVENT_SIGNAL_REFUSED] = {"signal-refused", LOG_WARNING, "0a5782b72eaf4cb385715a9f3b5fa44d"},
        [EVENT_ROLLOUT_STARTED] = {"rollout-started", LOG_INFO, "aec76d419ab54a4ba83fe522cd7d9440"},
        [EVENT_ROLLOUT_DONE] = {"rollout-done", LOG_INFO, "55bcaa74a4114086864e4a3d802e42ac"},
        [EVENT_ROLLOUT_HALTED] = {"rollout-halted", LOG_ERR, "b5d652ac47a9473bb6e0a86bef5799a8"},
        [EVENT_ROLLOUT_ABORTED] = {"rollout-aborted", LOG_WARNING, "40127c4a667e438a995cd2ed24a14def"},
        [EVENT_PLACES_HELD] = {"places-held", LOG_WARNING, "15e247db6883405f91740013f6ac01c5"},
        [EVENT_REDIS_UP] = {"redis-up", LOG_INFO, "12e1d2d4589c4a89bd689a8ebced7466"},
        [EVENT_REDIS_DOWN] = {"redis-down", LOG_ERR, "769878e19f844d038a72ebe8119a4f25"},
        [EVENT_QUEUE_OVER] = {"queue-over", LOG_WARNING, "7656ab2a56d14ed8a76c6d7dfeb0b6ea"},
        [EVENT_QUEUE_BACK] = {"queue-back", LOG_INFO, "866b9870572442ffb9275979cadddfa3"},
        [EVENT_REDIS_FAILOVER] = {"redis-failover", LOG_WARNING, "ceb8796fa4e042378a6e01b56ddc0b9d"},
        [EVENT_TIME_DOUBT] = {"time-doubt", LOG_WARNING, "989700e4a43c41f1a4b861fec10717c8"},
        [EVENT_JOB_LOST] = {"job-lost", LOG_ERR, "3ae5fac177484ac6b6b7773b2c5d8d0a"},
        [EVENT_JOB_RESCUED] = {"job-rescued", LOG_WARNING, "1e7d8a7c0eb34437b571e2837ab711bd"},
        [EVENT_JOB_PARKED] = {"job-parked", LOG_ERR, "257d9caf3c964106a7981dcc7c34c620"},
        [EVENT_RESCUE_OFF] = {"rescue-off", LOG_WARNING, "ac4a08e8843c419c88d92aff41a2f845"},
        [EVENT_RESCUE_FAILED] = {"rescue-failed", LOG_ERR, "2c8d5833761141ce80db08097c1f21d8"},
        [EVENT_JOB_LONG] = {"job-long", LOG_WARNING, "25efa6719f1c48ad8d8c75d3ca347d7c"},
        [EVENT_ORDER] = {"order", LOG_INFO, "bff299560cf443aeb39df5a4da71cf1c"},
};
static_assert(ELEMENTSOF(event_kinds) == _EVENT_MAX, "a name and an id for each event");

const char *event_kind_name(enum event_kind kind)
{
        return event_kinds[kind].name;
}

int event_kind_level(enum event_kind kind)
{
        return event_kinds[kind].level;
}

bool event_kind_ends(enum event_kind kind, enum event_kind trouble)
{
        switch (kind) {
        case EVENT_REDIS_UP:
                return trouble == EVENT_REDIS_DOWN;
        case EVENT_QUEUE_BACK:
                return trouble == EVENT_QUEUE_OVER;
        case EVENT_BEATS_AGAIN:
                return trouble == EVENT_STALE || trouble == EVENT_HUNG;
        default:
                return false;
        }
}

int event_kind_alert_level(enum event_kind kind)
{
        int level = event_kinds[kind].level;

        for (enum event_kind trouble = 0; trouble < _EVENT_MAX; trouble++)
                if (event_kind_ends(kind, trouble))
                        level = MIN(level, event_kinds[trouble].level);
        return level;
}

const char *event_kind_message_id(enum event_kind kind)
{
        return event_kinds[kind].message_id;
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

                if (holds_place(worker) && (longest == NULL || drain_since(worker) < drain_since(longest)))
                        longest = worker;
        }
        return longest;
}

static void places_text(const struct fleet *fleet, usec_t now, char *text, size_t size)
{
        const struct worker *longest = longest_drain(fleet);
        char span[32], oldest[OLDEST_MAX];

        if (longest == NULL) {
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
