/* SPDX-License-Identifier: MIT */
/* Follows restarts for those who wait for them: tells what moved, and when they have ended. */
#include "daemon/api/watch.h"
#include "daemon/api/status.h"
#include <string.h>

/* A worker as it was told of last. */
struct seen {
        unsigned index;
        pid_t pid;
        uint64_t pid_start;
        pid_t told_pid;
        uint64_t generation;
        enum worker_state state;
        bool outdated;
};

/* What is told of a fleet: where any of it differs, it is told again. */
struct told {
        uint64_t generation;
        const char *state;
        bool ended;
        unsigned total, replaced, outdated, draining;
        enum wait waits_for;
};

struct watched {
        char *name; /* a reload may take the fleet away */
        struct watch_order order;
        struct told told;
        struct seen *seen;
        size_t n_seen;
};

struct watch {
        struct watch_list *list;
        struct watch *next;
        struct call *call;
        bool drained;
        struct watched *fleets;
        size_t n_fleets;
};

static void watch_free(struct watch *watch)
{
        if (!watch)
                return;
        for (size_t i = 0; i < watch->n_fleets; i++) {
                free(watch->fleets[i].name);
                free(watch->fleets[i].seen);
        }
        free(watch->fleets);
        free(watch);
}

static void watch_free_pointer(struct watch **watch)
{
        watch_free(*watch);
}

static void watch_unlink(struct watch *watch)
{
        struct watch **link = &watch->list->first;

        while (*link != watch)
                link = &(*link)->next;
        *link = watch->next;
}

static void on_cancelled(struct call *call _unused_, void *userdata)
{
        watch_unlink(userdata);
        watch_free(userdata);
}

static struct watch *watch_new(struct watch_list *list, struct call *call, struct fleet *const *fleets,
                               const struct watch_order *orders, size_t n_fleets, bool drained)
{
        _cleanup_(watch_free_pointer) struct watch *watch = calloc(1, sizeof(*watch));

        if (!watch)
                return NULL;
        *watch = (struct watch){.list = list, .call = call, .drained = drained};
        watch->fleets = calloc(n_fleets + 1, sizeof(*watch->fleets));
        if (!watch->fleets)
                return NULL;
        for (size_t i = 0; i < n_fleets; i++) {
                watch->fleets[i] = (struct watched){.name = strdup(fleets[i]->settings->name)};
                if (orders)
                        watch->fleets[i].order = orders[i];
                watch->n_fleets = i + 1;
                if (!watch->fleets[i].name)
                        return NULL;
        }
        return TAKE_PTR(watch);
}

static const char *rollout_outcome(const struct fleet *fleet, bool waits_for_drains, bool *ret_ended)
{
        *ret_ended = true;
        switch (fleet->rollout.state) {
        case ROLLOUT_HALTED:
                /* What it says is complete with them. */
                *ret_ended = fleet->rollout.lines_token == 0;
                return rollout_state_name(fleet->rollout.state);
        case ROLLOUT_NONE:
        case ROLLOUT_ABORTED:
                return rollout_state_name(fleet->rollout.state);
        case ROLLOUT_RUNNING:
                if (fleet->world->shutting_down)
                        return "aborted";
                *ret_ended = false;
                return "running";
        default:
                *ret_ended = !waits_for_drains;
                return waits_for_drains ? "running" : "done";
        }
}

/* fleet may be NULL: it is no longer configured. */
static struct told describe(const struct watched *watched, const struct fleet *fleet, bool drained,
                            usec_t now)
{
        struct told told = watched->told;

        if (!fleet) {
                told.state = "aborted";
                told.ended = true;
                told.outdated = told.draining = 0;
                return told;
        }
        told = (struct told){
                .generation = fleet->generation,
                .state = "stopped",
                .ended = true,
                .total = fleet->rollout.total,
                .replaced = status_replaced(fleet, now),
                .outdated = fleet_count(fleet, now).outdated,
        };
        for (size_t i = 0; i < fleet->n_workers; i++) {
                const struct worker *worker = fleet->workers[i];

                told.draining += worker_outdated(worker) &&
                                 (worker->state == WORKER_QUIET || worker->state == WORKER_STOPPING);
        }
        if (!watched->order.refused)
                told.state = rollout_outcome(fleet, drained && told.draining > 0, &told.ended);
        if (!told.ended)
                told.waits_for = fleet->waits_for;
        return told;
}

static bool told_equal(const struct told *a, const struct told *b)
{
        return a->generation == b->generation && strcmp(a->state, b->state) == 0 && a->ended == b->ended &&
               a->total == b->total && a->replaced == b->replaced && a->outdated == b->outdated &&
               a->draining == b->draining && a->waits_for == b->waits_for;
}

static json_t *render_fleet(const struct watched *watched, const struct fleet *fleet, usec_t now)
{
        const struct told *told = &watched->told;
        uint64_t superseded = watched->order.superseded;
        char waits_for[512] = "";
        const char *error = "the fleet is no longer configured";

        if (fleet) {
                bool shutdown = fleet->world->shutting_down && fleet->rollout.state == ROLLOUT_RUNNING;

                error = watched->order.refused ? ""
                        : shutdown             ? "sqmgr is shutting down"
                                               : fleet->rollout.error;
                if (!told->ended)
                        fleet_waits_for(fleet, now, waits_for, sizeof(waits_for));
        }
        return json_pack("{s:o, s:I, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "name",
                         varlink_text(watched->name), "generation", (json_int_t)told->generation, "state",
                         told->state, "total", (json_int_t)told->total, "replaced",
                         (json_int_t)told->replaced, "outdated", (json_int_t)told->outdated, "draining",
                         (json_int_t)told->draining, "error", varlink_text(error), "waits_for",
                         varlink_text(waits_for), "superseded",
                         superseded > 0 ? json_integer((json_int_t)superseded) : json_null());
}

static int add_change(json_t *changes, const char *name, const struct seen *seen, enum worker_state state,
                      enum reason reason)
{
        json_t *change = json_pack("{s:o, s:I, s:I, s:b, s:s, s:s?}", "id",
                                   varlink_text(WORKER_ID_OF(name, seen->index)), "pid",
                                   (json_int_t)seen->told_pid, "generation", (json_int_t)seen->generation,
                                   "outdated", (int)seen->outdated, "state", worker_state_name(state),
                                   "reason", reason == REASON_NONE ? NULL : reason_name(reason));
        return json_array_append_new(changes, change);
}

static struct seen see(const struct worker *worker)
{
        return (struct seen){
                .index = worker->index,
                .pid = worker->pid,
                .pid_start = worker->pid_start,
                .told_pid = worker_pid(worker),
                .generation = worker->generation,
                .state = worker->state,
                .outdated = worker_outdated(worker),
        };
}

/* Adds to changes what became of the fleet's workers, and remembers them as they are. A worker whose main
 * process has gone, the one that beats living on, is the same still: its place and generation tell. */
static int compare_workers(struct watched *watched, const struct fleet *fleet, json_t *changes)
{
        size_t n_workers = fleet ? fleet->n_workers : 0, n_seen = 0, old = 0;
        _cleanup_free_ struct seen *seen = calloc(n_workers + 1, sizeof(*seen));

        if (!seen)
                return -ENOMEM;
        for (size_t i = 0; i < n_workers; i++) {
                const struct worker *worker = fleet->workers[i];

                if (worker->state == WORKER_GONE)
                        continue;
                struct seen now = see(worker);
                for (; old < watched->n_seen && watched->seen[old].index < now.index; old++)
                        if (add_change(changes, watched->name, &watched->seen[old], WORKER_GONE,
                                       REASON_NONE) < 0)
                                return -ENOMEM;

                bool known = old < watched->n_seen && watched->seen[old].index == now.index;
                if (known && watched->seen[old].generation == now.generation &&
                    now.state >= watched->seen[old].state &&
                    (watched->seen[old].pid_start == now.pid_start ||
                     watched->seen[old].told_pid == now.pid)) {
                        if (watched->seen[old].state != now.state &&
                            add_change(changes, watched->name, &now, now.state, worker->reason) < 0)
                                return -ENOMEM;
                        old++;
                } else {
                        if (known && add_change(changes, watched->name, &watched->seen[old++], WORKER_GONE,
                                                REASON_NONE) < 0)
                                return -ENOMEM;
                        if (add_change(changes, watched->name, &now, now.state, worker->reason) < 0)
                                return -ENOMEM;
                }
                seen[n_seen++] = now;
        }
        for (; old < watched->n_seen; old++)
                if (add_change(changes, watched->name, &watched->seen[old], WORKER_GONE, REASON_NONE) < 0)
                        return -ENOMEM;
        free(watched->seen);
        watched->seen = TAKE_PTR(seen);
        watched->n_seen = n_seen;
        return 0;
}

/* Brings what is told up to date. first: all workers are new, and none of that is a change. *ret_reply is
 * NULL where nothing moved. Returns 1 where all has ended, 0, or -ENOMEM. */
static int watch_update(struct watch *watch, const struct world *world, bool first, usec_t now,
                        json_t **ret_reply)
{
        _cleanup_json_ json_t *changes = json_array(), *none = json_array(), *fleets = json_array();
        bool moved = first, ended = true;

        if (!changes || !none)
                return -ENOMEM;
        for (size_t i = 0; i < watch->n_fleets; i++) {
                struct watched *watched = &watch->fleets[i];
                const struct fleet *fleet = world_fleet(world, watched->name);
                struct told told = describe(watched, fleet, watch->drained, now);

                moved = moved || !told_equal(&told, &watched->told);
                ended = ended && told.ended;
                watched->told = told;
                if (compare_workers(watched, fleet, changes) < 0 ||
                    json_array_append_new(fleets, render_fleet(watched, fleet, now)) < 0)
                        return -ENOMEM;
        }

        json_t *reply = NULL;
        if (moved || json_array_size(changes) > 0) {
                reply = json_pack("{s:O, s:O}", "fleets", fleets, "changes", first ? none : changes);
                if (!reply)
                        return -ENOMEM;
        }
        *ret_reply = reply;
        return ended;
}

void watch_reply(struct watch_list *list, struct call *call, const struct world *world,
                 struct fleet *const *fleets, const struct watch_order *orders, size_t n_fleets, bool wait,
                 bool drained, usec_t now)
{
        _cleanup_(watch_free_pointer) struct watch *watch =
                watch_new(list, call, fleets, orders, n_fleets, drained);
        json_t *reply = NULL;
        int r = watch ? watch_update(watch, world, true, now, &reply) : -ENOMEM;

        if (r != 0 || !wait) {
                server_reply(call, reply, false);
                return;
        }
        server_reply(call, reply, true);
        server_keep(call, on_cancelled, watch);
        watch->next = list->first;
        list->first = TAKE_PTR(watch);
}

void watch_tick(struct watch_list *list, const struct world *world, usec_t now)
{
        struct watch *next;

        for (struct watch *watch = list->first; watch; watch = next) {
                json_t *reply = NULL;
                int r = watch_update(watch, world, false, now, &reply);

                next = watch->next;
                if (r == 0 && reply) {
                        server_reply(watch->call, reply, true);
                } else if (r != 0) {
                        server_reply(watch->call, reply, false);
                        watch_unlink(watch);
                        watch_free(watch);
                }
        }
}
