/* SPDX-License-Identifier: MIT */
/* Follows restarts for waiting clients: reports progress and the end. */
#include "daemon/api/handler.h"
#include "io/clock.h"
#include "model/counts.h"
#include "model/rollout.h"
#include "model/world.h"

/* Interval of replies with workers, sent even without changes: ages grow. */
#define WORKERS_USEC USEC_PER_SEC

/* A worker as last reported. */
struct seen_worker {
        unsigned index;
        pid_t pid;
        uint64_t pid_start;
        pid_t reported_pid;
        uint64_t generation;
        enum worker_state state;
        bool outdated;
};

/* The facts reported of a fleet: any difference is reported again. */
struct reported_fleet {
        uint64_t generation;
        enum rollout_state state;
        bool refused; /* no restart was started; takes precedence over state */
        bool ended;
        unsigned total, replaced, outdated, draining, failed;
        enum wait waits_for;
};

struct watched {
        char *name; /* copied: a reload may remove the fleet */
        struct watch_order order;
        struct reported_fleet reported;
        char waits_for[512]; /* the sentence last reported */
        bool moved;          /* progress since the previous reply */
        struct seen_worker *seen;
        size_t n_seen;
};

struct watcher {
        struct control *control;
        struct watcher *next;
        struct call *call;
        bool drained, workers;
        sd_event_source *timer; /* NULL: the client does not want workers */
        struct watched *fleets;
        size_t n_fleets;
        uint64_t events_at; /* number of the next event to report */
};

static void watch_free(struct watcher *watch)
{
        if (!watch)
                return;
        for (size_t i = 0; i < watch->n_fleets; i++) {
                free(watch->fleets[i].name);
                free(watch->fleets[i].seen);
        }
        free(watch->fleets);
        sd_event_source_disable_unref(watch->timer);
        free(watch);
}

DEFINE_CLEANUP(struct watcher *, watch_free)

static void on_cancelled(struct call *call _unused_, void *userdata)
{
        struct watcher *watch = userdata;

        LIST_UNLINK(watch->control->watchers, watch);
        watch_free(watch);
}

static struct watcher *watch_new(struct control *control, struct call *call,
                                 const struct watch_request *request, const struct handler_fleets *list,
                                 const struct watch_order *orders)
{
        _cleanup_(watch_free_pointer) struct watcher *watch = calloc(1, sizeof(*watch));

        if (!watch)
                return NULL;
        *watch = (struct watcher){.control = control,
                                  .call = call,
                                  .drained = request->drained,
                                  .workers = request->workers,
                                  .events_at = events_end(control->events)};
        watch->fleets = calloc(list->n_fleets + 1, sizeof(*watch->fleets));
        if (!watch->fleets)
                return NULL;
        for (size_t i = 0; i < list->n_fleets; i++) {
                watch->fleets[i] =
                        (struct watched){.name = strdup(list->fleets[i]->settings->name), .order = orders[i]};
                watch->n_fleets = i + 1;
                if (!watch->fleets[i].name)
                        return NULL;
        }
        return TAKE_PTR(watch);
}

static enum rollout_state rollout_outcome(const struct fleet *fleet, bool waits_for_drains, bool *ret_ended)
{
        enum rollout_state state = fleet->rollout.state;

        *ret_ended = true;
        switch (state) {
        case ROLLOUT_HALTED:
                /* The reply is complete only with the log tail. */
                *ret_ended = fleet->rollout.lines_token == 0;
                return state;
        case ROLLOUT_NONE:
        case ROLLOUT_ABORTED:
                return state;
        case ROLLOUT_RUNNING:
                if (fleet->world->shutting_down)
                        return ROLLOUT_ABORTED;
                *ret_ended = false;
                return state;
        default:
                *ret_ended = !waits_for_drains;
                return waits_for_drains ? ROLLOUT_RUNNING : state;
        }
}

/* Returns the state of a return to a generation. */
static enum rollout_state return_outcome(const struct watched *watched, const struct fleet *fleet,
                                         const struct fleet_counts *counts, bool drained, bool *ret_ended)
{
        bool given_up = !fleet->rollout.returned || fleet->generation != watched->order.returned_to ||
                        fleet->world->shutting_down;

        *ret_ended = given_up || (fleet_given_up(fleet) == 0 && counts->active >= fleet_target(fleet) &&
                                  !(drained && counts->draining > 0));
        return given_up ? ROLLOUT_ABORTED : *ret_ended ? ROLLOUT_DONE : ROLLOUT_RUNNING;
}

/* The order has no effect on the fleet. */
static bool is_left_out(const struct watched *watched)
{
        return watched->order.kept != ORDER_RUN || watched->order.not_in_memory;
}

/* Returns the current facts. fleet is NULL if no longer configured. */
static struct reported_fleet describe(const struct watched *watched, const struct fleet *fleet, bool drained,
                                      usec_t now)
{
        struct reported_fleet reported = watched->reported;

        if (!fleet) {
                reported.state = ROLLOUT_ABORTED;
                reported.ended = true;
                reported.refused = false;
                reported.outdated = reported.draining = 0;
                return reported;
        }
        struct fleet_counts counts = fleet_count(fleet, now);
        reported = (struct reported_fleet){
                .generation = generation_shown(fleet),
                .refused = is_left_out(watched),
                .ended = true,
                .total = fleet->rollout.total,
                .replaced = fleet_replaced(fleet, now),
                .outdated = counts.outdated,
                .draining = counts.draining,
                .failed = fleet->rollout.failures,
        };
        if (watched->order.returned_to != 0)
                reported.state = return_outcome(watched, fleet, &counts, drained, &reported.ended);
        else if (!reported.refused)
                reported.state = rollout_outcome(fleet, drained && reported.draining > 0, &reported.ended);
        if (!reported.ended)
                reported.waits_for = fleet->waits_for;
        return reported;
}

static bool reported_equal(const struct reported_fleet *a, const struct reported_fleet *b)
{
        return a->generation == b->generation && a->state == b->state && a->refused == b->refused &&
               a->ended == b->ended && a->total == b->total && a->replaced == b->replaced &&
               a->outdated == b->outdated && a->draining == b->draining && a->failed == b->failed &&
               a->waits_for == b->waits_for;
}

/* Updates the facts reported of a fleet. first: nothing was reported yet. Returns true if any fact
 * differs. */
static bool watched_update(struct watched *watched, const struct fleet *fleet, bool drained, bool first,
                           usec_t now)
{
        struct reported_fleet before = watched->reported;

        watched->reported = describe(watched, fleet, drained, now);
        watched->moved = first || watched->reported.replaced != before.replaced ||
                         watched->reported.draining != before.draining;
        return first || !reported_equal(&watched->reported, &before);
}

/* Before a repeated report, updates the sentence on what the restart waits for. */
static void watched_report_wait(struct watched *watched, const struct fleet *fleet, usec_t now)
{
        char before[sizeof(watched->waits_for)];

        memcpy(before, watched->waits_for, sizeof(before));
        watched->waits_for[0] = '\0';
        if (fleet && !watched->reported.ended)
                fleet_waits_for(fleet, now, watched->waits_for, sizeof(watched->waits_for));
        watched->moved |= watched->waits_for[0] != '\0' && strcmp(watched->waits_for, before) != 0;
}

static const char *watched_error(const struct watched *watched, const struct fleet *fleet)
{
        if (!fleet)
                return "the fleet is no longer configured";
        if (is_left_out(watched))
                return "";
        if (fleet->world->shutting_down && fleet->rollout.state == ROLLOUT_RUNNING)
                return "sqmgr is shutting down";
        if (watched->order.returned_to != 0 && !fleet->rollout.returned)
                return fleet->rollout.state == ROLLOUT_HALTED ? fleet->rollout.error : "a restart has begun";
        return fleet->rollout.error;
}

json_t *watch_render_not_in_memory(const struct fleet *fleet, const char *reason)
{
        uint64_t before = fleet->rollout.before;

        return json_pack("{s:o, s:o, s:o, s:s}", "fleet", varlink_text(fleet->settings->name), "generation",
                         before > 0 ? json_integer((json_int_t)before) : json_null(), "directory",
                         varlink_text(fleet->settings->directory), "reason", reason);
}

/* Returns a new reference, or NULL when memory is short. fleet may be NULL. */
static json_t *render_fleet(const struct watched *watched, const struct fleet *fleet, bool workers,
                            usec_t now)
{
        const struct reported_fleet *reported = &watched->reported;
        uint64_t superseded = watched->order.superseded;
        uint64_t threshold = workers && fleet ? fleet->settings->memory_threshold : 0;
        static const struct quoted nothing;
        char ordered[FLEET_ORDERED_MAX] = "";

        if (fleet)
                fleet_ordered_text(fleet, now, ordered);

        json_t *object = json_pack(
                "{s:o, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:s?, s:o, s:o}",
                "name", varlink_text(watched->name), "generation", (json_int_t)reported->generation, "state",
                !reported->refused             ? rollout_state_name(reported->state)
                : watched->order.not_in_memory ? "not_in_memory"
                                               : fleet_order_name(watched->order.kept),
                "total", (json_int_t)reported->total, "replaced", (json_int_t)reported->replaced, "outdated",
                (json_int_t)reported->outdated, "draining", (json_int_t)reported->draining, "failed",
                (json_int_t)reported->failed, "error", varlink_text(watched_error(watched, fleet)),
                "waits_for", varlink_text(watched->waits_for), "moved", (int)watched->moved, "superseded",
                superseded > 0 ? json_integer((json_int_t)superseded) : json_null(), "workers",
                workers && fleet ? status_workers(fleet, now) : json_null(), "memory_threshold_bytes",
                threshold > 0 ? json_integer((json_int_t)threshold) : json_null(), "state_text",
                varlink_text(ordered), "waits_for_code",
                watched->waits_for[0] != '\0' && fleet ? wait_code(fleet->waits_for) : NULL, "rolled_back",
                status_rolled_back(fleet), "not_in_memory",
                watched->order.not_in_memory && fleet
                        ? watch_render_not_in_memory(fleet, watched->order.not_in_memory)
                        : json_null());
        return quoted_put(object, fleet && !is_left_out(watched) ? &fleet->rollout.quoted : &nothing);
}

/* Returns 0, or -1 when memory is short. */
static int add_change(json_t *changes, const char *name, const struct seen_worker *seen,
                      enum worker_state state, enum reason reason)
{
        json_t *change = json_pack("{s:o, s:I, s:I, s:b, s:s, s:s?}", "id",
                                   varlink_text(WORKER_ID_OF(name, seen->index)), "pid",
                                   (json_int_t)seen->reported_pid, "generation", (json_int_t)seen->generation,
                                   "outdated", (int)seen->outdated, "state", worker_state_name(state),
                                   "reason", reason == REASON_NONE ? NULL : reason_name(reason));
        return json_array_append_new(changes, change);
}

static struct seen_worker see(const struct worker *worker)
{
        return (struct seen_worker){
                .index = worker->index,
                .pid = worker->process.pid,
                .pid_start = worker->process.start,
                .reported_pid = worker_pid(worker),
                .generation = worker->generation,
                .state = worker->state,
                .outdated = worker_outdated(worker),
        };
}

/* A worker stays the same when its main process exits while the heartbeat process lives on. Index and
 * generation are unchanged then. */
static bool is_same(const struct seen_worker *before, const struct seen_worker *now)
{
        return before->generation == now->generation && now->state >= before->state &&
               (before->pid_start == now->pid_start || before->reported_pid == now->pid);
}

/* Adds the changes of the fleet's workers to changes, and stores the current workers. Both lists are sorted
 * by index. */
static int compare_workers(struct watched *watched, const struct fleet *fleet, json_t *changes)
{
        size_t n_workers = fleet ? fleet->n_workers : 0, n_seen = 0;
        const struct seen_worker *before = watched->seen, *end = before ? before + watched->n_seen : NULL;
        _cleanup_free_ struct seen_worker *seen = calloc(n_workers + 1, sizeof(*seen));
        int r = 0;

        if (!seen)
                return -ENOMEM;
        for (size_t i = 0; i < n_workers; i++) {
                const struct worker *worker = fleet->workers[i];

                if (worker->state == WORKER_GONE)
                        continue;
                struct seen_worker now = see(worker);
                for (; before < end && before->index < now.index; before++)
                        r |= add_change(changes, watched->name, before, WORKER_GONE, REASON_NONE);
                bool known = before < end && before->index == now.index;
                bool same = known && is_same(before, &now);
                if (known && !same)
                        r |= add_change(changes, watched->name, before, WORKER_GONE, REASON_NONE);
                if (!same || before->state != now.state)
                        r |= add_change(changes, watched->name, &now, now.state, worker->reason);
                before += known;
                seen[n_seen++] = now;
        }
        for (; before < end; before++)
                r |= add_change(changes, watched->name, before, WORKER_GONE, REASON_NONE);
        free(watched->seen);
        watched->seen = TAKE_PTR(seen);
        watched->n_seen = n_seen;
        return r < 0 ? -ENOMEM : 0;
}

enum update {
        UPDATE_MOVED,   /* report changes */
        UPDATE_FIRST,   /* report everything; new workers are no changes */
        UPDATE_WORKERS, /* report the workers and changes */
};

/* Updates the facts to report. *ret_reply is NULL if there is nothing to report. Returns 1 when all restarts
 * have ended, 0, or -ENOMEM. */
static int watch_update(struct watcher *watch, enum update update, usec_t now, json_t **ret_reply)
{
        _cleanup_json_ json_t *changes = json_array(), *fleets = json_array(), *events = json_array();
        bool first = update == UPDATE_FIRST, due = update != UPDATE_MOVED, ended = true;

        if (!changes || !events)
                return -ENOMEM;
        for (size_t i = 0; i < watch->n_fleets; i++) {
                struct watched *watched = &watch->fleets[i];
                const struct fleet *fleet = world_fleet(watch->control->runtime->world, watched->name);

                due = watched_update(watched, fleet, watch->drained, first, now) || due;
                ended = ended && watched->reported.ended;
                if (compare_workers(watched, fleet, changes) < 0 ||
                    events_add_troubles(watch->control->events, watch->events_at, watched->name, events) < 0)
                        return -ENOMEM;
        }
        if (first)
                json_array_clear(changes);
        watch->events_at = events_end(watch->control->events);
        due = due || json_array_size(changes) > 0 || json_array_size(events) > 0;
        for (size_t i = 0; due && i < watch->n_fleets; i++) {
                struct watched *watched = &watch->fleets[i];
                const struct fleet *fleet = world_fleet(watch->control->runtime->world, watched->name);

                watched_report_wait(watched, fleet, now);
                if (json_array_append_new(fleets, render_fleet(watched, fleet, watch->workers, now)) < 0)
                        return -ENOMEM;
        }
        *ret_reply =
                due ? json_pack("{s:O, s:O, s:O}", "fleets", fleets, "changes", changes, "events", events)
                    : NULL;
        return due && !*ret_reply ? -ENOMEM : ended;
}

/* Sends an update if there is anything to report. Frees the watch after the last one. */
static void watch_report(struct watcher *watch, enum update update, usec_t now)
{
        json_t *reply = NULL;
        int r = watch_update(watch, update, now, &reply);

        if (r == 0 && reply) {
                call_reply(watch->call, reply, true);
        } else if (r != 0) {
                call_reply(watch->call, reply, false);
                LIST_UNLINK(watch->control->watchers, watch);
                watch_free(watch);
        }
}

static int on_timer(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct watcher *watch = userdata;

        (void)sd_event_source_set_time_relative(source, WORKERS_USEC);
        watch_report(watch, UPDATE_WORKERS, clock_now(CLOCK_MONOTONIC));
        return 0;
}

static int arm_timer(struct watcher *watch)
{
        int r = sd_event_add_time_relative(watch->control->runtime->event, &watch->timer, CLOCK_MONOTONIC,
                                           WORKERS_USEC, 0, on_timer, watch);

        return r < 0 ? r : sd_event_source_set_enabled(watch->timer, SD_EVENT_ON);
}

void watch_reply(struct control *control, struct call *call, const struct watch_request *request,
                 const struct handler_fleets *list, const struct watch_order *orders, usec_t now)
{
        _cleanup_(watch_free_pointer) struct watcher *watch = watch_new(control, call, request, list, orders);
        json_t *reply = NULL;
        int r = watch ? watch_update(watch, UPDATE_FIRST, now, &reply) : -ENOMEM;

        if (r != 0 || !request->wait) {
                call_reply(call, reply, false);
                return;
        }
        if (watch->workers && arm_timer(watch) < 0) {
                json_decref(reply);
                call_reply(call, NULL, false);
                return;
        }
        call_reply(call, reply, true);
        call_keep(call, on_cancelled, watch);
        watch->next = control->watchers;
        control->watchers = TAKE_PTR(watch);
}

void watch_tick(struct control *control, usec_t now)
{
        struct watcher *next;

        for (struct watcher *watch = control->watchers; watch; watch = next) {
                next = watch->next;
                watch_report(watch, UPDATE_MOVED, now);
        }
}
