/* SPDX-License-Identifier: MIT */
/* Decides what to start, quiet, stop and kill. Apart from the three rules (start, quiet, stop), the code only
 * decides which workers are to leave. */
#include "decide/plan.h"
#include "model/counts.h"
#include "model/deadlines.h"
#include "model/idle_proof.h"
#include "model/memory.h"
#include "model/preload.h"
#include "model/rollout.h"
#include "model/world.h"
#include <limits.h>

/* Working data of one fleet's plan. */
struct round {
        struct plan *plan;
        struct fleet *fleet;
        usec_t now;
        unsigned target, max, surge;
        unsigned live, starting;
        unsigned active; /* with workers whose heartbeat is elsewhere: by their title they accept jobs */
        unsigned elsewhere;
        unsigned ready, title_ready;
        unsigned hung;              /* would be active if they did not hang */
        unsigned starting_outdated; /* starting workers of the release that a restart replaces: they may never
                                       send a heartbeat */
        unsigned keepers;           /* starting or active, and not to leave */
        unsigned draining_for_restart;
        uint64_t expected_bytes; /* of a worker; valid if expected_known */
        bool expected_known;
        bool starts;     /* the plan starts a worker */
        bool forks;      /* a fork is or was requested */
        bool hang_ended; /* a hung worker is being stopped, to see whether another one sends heartbeats */
        bool fails;      /* the plan gives up a new worker */
        int error;
};

/* Wakes the loop at this time, unless it has passed. */
static inline void round_wake(struct round *round, usec_t at)
{
        if (at > round->now)
                round->plan->wake_at = MIN(round->plan->wake_at, at);
}

static uint64_t expected_bytes(struct round *round)
{
        if (!round->expected_known)
                round->expected_bytes = memory_expected_bytes(round->fleet);
        round->expected_known = true;
        return round->expected_bytes;
}

/* Adds an action; sets round->error if memory is short. */
static void round_add(struct round *round, struct action action)
{
        struct plan *plan = round->plan;

        if (action.kind == ACTION_START)
                plan->reserved_bytes += expected_bytes(round);
        else if (action.kind == ACTION_LOAD)
                plan->reserved_bytes += fleet_template_bytes(round->fleet);
        if (!ARRAY_RESERVE(plan->actions, plan->n_actions, plan->allocated)) {
                round->error = -ENOMEM;
                return;
        }
        action.fleet = round->fleet;
        plan->actions[plan->n_actions++] = action;
}

/* Returns how many workers beyond the target are allowed, and in *ret_reason the reason that allows the most.
 */
static unsigned allowance(struct round *round, enum reason *ret_reason)
{
        unsigned most = 0;

        FLEET_FOREACH_WORKER(round->fleet, worker) {
                enum reason reason = worker->verdict.retire_reason;
                unsigned allowed = reason == REASON_AGE || reason == REASON_DEAF || reason == REASON_BOOT;

                if (worker->state > WORKER_ACTIVE || worker_hangs(worker))
                        continue;
                if (reason == REASON_RESTART)
                        allowed = round->surge;
                else if (reason == REASON_ROLLBACK)
                        allowed = round->surge > 0 ? round->target : 0;
                else if (reason == REASON_MEMORY && !worker->memory.over_limit)
                        allowed = round->now >= round->fleet->churn.next_at;
                if (allowed > most) {
                        most = allowed;
                        *ret_reason = reason;
                }
        }
        return most;
}

/* Returns the count up to which rule 1 starts workers. If all workers are silent and some hang, Redis itself
 * may not accept heartbeats. Only one worker is started then; the others follow once any worker has sent a
 * heartbeat. */
static unsigned start_ceiling(struct round *round, enum reason *ret_reason)
{
        unsigned ceiling = round->target + allowance(round, ret_reason);

        if (round->hung == 0 || round->fleet->fresh_since != 0)
                return ceiling;
        return MIN(ceiling, usec_sub(round->target, round->hung) + 1);
}

/* Returns the memory reserved so far, including the starts of this plan. That of others is counted once per
 * plan. */
static uint64_t reserved_bytes(struct round *round)
{
        struct plan *plan = round->plan;

        if (!plan->reserved_known)
                plan->reserved_bytes += memory_reserved_bytes(round->fleet->world, round->now);
        plan->reserved_known = true;
        return plan->reserved_bytes;
}

/* An extra process, beyond the count including draining ones, starts only if memory remains for it after all
 * others have grown to their expected size. A worker below the count is not extra. Neither is the first one
 * of a fleet without active workers. */
static bool lacks_memory(struct round *round)
{
        const struct world *world = round->fleet->world;

        if (round->live < round->target ||
            (!round->starts && round->active + round->starting + round->hung == 0))
                return false;
        return world->available_bytes > 0 &&
               memory_is_short(world, reserved_bytes(round), expected_bytes(round));
}

/* No template can load before one of them has ended, and a loading one may take stop_timeout for that. */
static bool all_templates_end(const struct fleet *fleet)
{
        FLEET_FOREACH_TEMPLATE(fleet, template)
                if (template->state != TEMPLATE_ENDING)
                        return false;
        return true;
}

/* Returns true if a worker may be started now. *ret_template: the template to fork it from, or NULL. Each
 * template forks one worker at a time. */
static bool choose_template(struct round *round, struct template **ret_template)
{
        struct fleet *fleet = round->fleet;

        *ret_template = NULL;
        if (fleet->preload.unrecorded || all_templates_end(fleet))
                return true;
        struct template *template =
                fleet_template_to_fork(fleet, round->active + round->starting < round->target);
        *ret_template = template;
        if (!template) {
                fleet->waits_for = fleet_preloads(fleet) ? WAIT_TEMPLATE : WAIT_NONE;
                return fleet->waits_for == WAIT_NONE;
        }
        if (template_forks(template))
                return false;
        if (round->now < fleet->preload.retry_at) {
                round_wake(round, fleet->preload.retry_at);
                fleet->waits_for = WAIT_FORK;
                return false;
        }
        round->forks = true;
        return true;
}

/* Rule 1: starts workers. Sets what the fleet waits for. */
static void plan_starts(struct round *round)
{
        struct fleet *fleet = round->fleet;

        fleet->waits_for = WAIT_NONE;
        round_wake(round, fleet->crash.next_at);
        round_wake(round, fleet->shortage.next_at);
        round_wake(round, fleet->churn.next_at);
        if (round->keepers >= round->target)
                return;

        enum reason reason = REASON_NONE;
        unsigned ceiling = start_ceiling(round, &reason);
        /* Without surge, a replacement waits until the old worker is gone. */
        unsigned held = round->surge == 0 ? round->draining_for_restart : 0;
        unsigned taken = round->active + round->starting + held, index = 0;
        unsigned freed = round->now < fleet->crash.next_at ? fleet->crash.freed : UINT_MAX;
        size_t at = 0;

        /* Without its server, a fleet starts only workers that are missing. */
        taken -= fleet->redis_up ? round->starting_outdated : 0;
        while (round->keepers < round->target && taken < ceiling) {
                bool extra = taken >= round->target;
                struct template *template;

                if (fleet->held)
                        fleet->waits_for = WAIT_ADOPTION;
                else if (rollout_withholds(fleet))
                        fleet->waits_for = WAIT_RETURNED;
                else if (extra && !fleet->redis_up)
                        fleet->waits_for = WAIT_REDIS;
                else if (round->now < fleet->shortage.next_at)
                        fleet->waits_for = WAIT_FORK;
                else if (freed == 0)
                        fleet->waits_for = WAIT_BACKOFF;
                else if (round->live >= round->max)
                        fleet->waits_for = WAIT_PLACES;
                else if (lacks_memory(round))
                        fleet->waits_for = WAIT_MEMORY;
                if (fleet->waits_for != WAIT_NONE || !choose_template(round, &template))
                        return;
                index = fleet_next_index(fleet, index, &at);
                round_add(round, (struct action){.kind = ACTION_START,
                                                 .template = template,
                                                 .index = index,
                                                 .reason = extra ? reason : REASON_NONE});
                round->starts = true;
                round->live++;
                round->keepers++;
                taken++;
                freed--;
                if (template)
                        return;
        }
        if (round->keepers < round->target && held > 0)
                fleet->waits_for = WAIT_PLACES;
        else if (round->keepers < round->target && round->hung > 0 && fleet->fresh_since == 0)
                fleet->waits_for = WAIT_HUNG;
        else if (round->keepers < round->target && round->now < fleet->churn.next_at)
                fleet->waits_for = WAIT_BACKOFF;
}

/* Another template loads only if memory remains for it. Exceptions: a worker below the count waits for it, or
 * no active worker remains. */
static bool lacks_memory_to_load(struct round *round)
{
        const struct fleet *fleet = round->fleet;

        return round->live >= round->target && round->active + round->starting + round->hung > 0 &&
               memory_is_short(fleet->world, reserved_bytes(round), fleet_template_bytes(fleet));
}

static enum wait load_wait(struct round *round)
{
        const struct fleet *fleet = round->fleet;

        if (fleet->held)
                return WAIT_ADOPTION;
        if (!fleet->redis_up && round->active + round->starting >= round->target)
                return WAIT_REDIS;
        if (round->now < fleet->shortage.next_at)
                return WAIT_FORK;
        if (round->now < fleet->crash.next_at)
                return WAIT_BACKOFF;
        return lacks_memory_to_load(round) ? WAIT_MEMORY : WAIT_NONE;
}

/* A loading template may turn out to be a worker: wait boot_timeout before ending it. */
static bool template_is_due(struct round *round, const struct template *template)
{
        const struct fleet *fleet = round->fleet;
        usec_t deadline = template_boot_deadline(template);

        if (!template_is_kept(template))
                return true;
        if (template_forks(template) && template->fork.waited >= fleet_fork_patience(fleet))
                return true;
        if (template->state != TEMPLATE_LOADING || !fleet->redis_up)
                return false;
        round_wake(round, deadline);
        return round->now >= deadline && template->boot_polled_at >= deadline;
}

/* Loads, ends and kills templates. Call after plan_starts(), which sets the wait of starts. */
static void plan_templates(struct round *round)
{
        struct fleet *fleet = round->fleet;

        if (fleet->rollout.kept_since != 0)
                round_wake(round, usec_add(fleet->rollout.kept_since, TEMPLATE_KEEP_USEC));
        FLEET_FOREACH_TEMPLATE(fleet, template) {
                if (template->state == TEMPLATE_ENDING) {
                        round_wake(round, template_kill_at(template));
                        if (round->now >= template_kill_at(template))
                                round_add(round, (struct action){.kind = ACTION_TEMPLATE_KILL,
                                                                 .template = template});
                } else if (template_is_alive(template) && template_is_due(round, template)) {
                        round_add(round, (struct action){.kind = ACTION_TEMPLATE_END, .template = template});
                }
        }
        if (!fleet_wants_template(fleet))
                return;
        enum wait wait = load_wait(round);
        if (wait != WAIT_NONE && (fleet->waits_for == WAIT_TEMPLATE || fleet->waits_for == WAIT_NONE))
                fleet->waits_for = wait;
        if (wait != WAIT_NONE)
                return;
        round_add(round, (struct action){.kind = ACTION_LOAD});
        if (fleet->shortage.count > 0)
                fleet->waits_for = WAIT_FORK;
}

void plan_free(struct plan *plan)
{
        free(plan->actions);
        free(plan->scratch);
        *plan = (struct plan){0};
}

enum action_signal action_signal(const struct action *action)
{
        switch (action->kind) {
        case ACTION_QUIET:
                return worker_quiet_is_stop(action->worker) ? ACTION_SIGNAL_STOP : ACTION_SIGNAL_QUIET;
        case ACTION_STOP:
                return action->worker->process.unproven || worker_drains_to_exit(action->worker)
                               ? ACTION_SIGNAL_NONE
                               : ACTION_SIGNAL_STOP;
        case ACTION_KILL:
                return ACTION_SIGNAL_KILL;
        default:
                return ACTION_SIGNAL_NONE;
        }
}

static void act(struct round *round, enum action_kind kind, struct worker *worker, enum reason reason)
{
        if (worker->orders.signal_error != 0)
                worker->verdict.waits_for = WAIT_SIGNAL;
        round_add(round,
                  (struct action){.kind = kind, .worker = worker, .index = worker->index, .reason = reason});
}

/* The evidence still missing before an action may rely on the worker's heartbeats (P5, P9). */
static enum wait evidence_wait(const struct worker *worker, usec_t now)
{
        const struct fleet *fleet = worker->fleet;

        if (!fleet->redis_up)
                return WAIT_REDIS;
        if (worker->process.elsewhere)
                return worker->heartbeat.ambiguous       ? WAIT_AMBIGUOUS
                       : worker_title_fresh(worker, now) ? WAIT_NONE
                                                         : WAIT_ELSEWHERE;
        if (!worker->heartbeat.seen)
                return WAIT_FIRST_HEARTBEAT;
        if (worker->heartbeat.hung)
                return WAIT_HUNG;
        if (worker_fresh(worker, now))
                return WAIT_NONE;
        return worker_silent_usec(worker, now) > worker_stale_usec(worker) ? WAIT_STALE
                                                                           : WAIT_FRESH_HEARTBEAT;
}

/* Returns why a worker should leave whichever release it is of. */
static enum reason worn_out(const struct worker *worker, usec_t now)
{
        const struct fleet *fleet = worker->fleet;

        if (worker->memory.over_threshold)
                return REASON_MEMORY;
        if (fleet->settings->max_age > 0 && usec_sub(now, worker->spawned_at) >= fleet->settings->max_age)
                return REASON_AGE;
        return fleet->settings->hang_action == HANG_KILL && worker_is_deaf(worker) ? REASON_DEAF
                                                                                   : REASON_NONE;
}

/* The worker has booted and accepts jobs by its title, but its heartbeat is elsewhere. */
static bool is_elsewhere(const struct worker *worker)
{
        return worker->state == WORKER_STARTING && worker->process.elsewhere;
}

/* The server has lost the record of a worker that registers only once. Another worker takes its place. */
static bool is_unregistered(const struct worker *worker, usec_t now)
{
        const struct fleet *fleet = worker->fleet;

        return is_elsewhere(worker) && fleet->settings->traits->process_is_heartbeat && fleet->boot_heard &&
               fleet->redis_up && now >= worker_boot_deadline(worker);
}

/* The server may have lost the record of a silent worker that registers only once, and a signal asks it to
 * exit after its jobs: that is harmless, even if it hangs. */
static bool is_asked_in_silence(const struct worker *worker, usec_t now)
{
        return worker->state == WORKER_ACTIVE && worker->fleet->redis_up && worker->evidence.title_known &&
               worker->fleet->settings->traits->process_is_heartbeat && worker_quiet_is_stop(worker) &&
               worker_silent_usec(worker, now) > worker_stale_usec(worker);
}

/* Returns why a starting or active worker should leave, apart from surplus. */
static enum reason unwanted_for(const struct worker *worker, usec_t now)
{
        const struct fleet *fleet = worker->fleet;

        if (fleet->world->shutting_down)
                return REASON_SHUTDOWN;
        if (fleet_order(fleet) != ORDER_RUN || worker->orders.quiet)
                return REASON_OPERATOR;
        if (worker->memory.over_limit)
                return REASON_MEMORY;
        if (worker_is_given_up(worker))
                return REASON_ROLLBACK;
        if (worker_outdated(worker) && generation_is_replaced(worker))
                return REASON_RESTART;
        if (is_unregistered(worker, now))
                return REASON_BOOT;
        return worn_out(worker, now);
}

/* An operator's order and memory_limit do not wait until other workers are ready. */
static bool is_urgent(const struct worker *worker)
{
        enum reason reason = worker->verdict.retire_reason;

        /* Jobs fail in the release that is given up: its workers leave at once if nothing can replace them.
         */
        return reason == REASON_SHUTDOWN || reason == REASON_OPERATOR ||
               (reason == REASON_ROLLBACK && rollout_drops(worker->fleet)) || worker->memory.over_limit;
}

static bool is_starting(const struct worker *worker)
{
        return worker->state == WORKER_STARTING && !worker->process.elsewhere;
}

static bool counts_as_active(const struct worker *worker)
{
        return is_elsewhere(worker) || (worker->state == WORKER_ACTIVE && !worker->heartbeat.hung);
}

/* Without surge, another worker takes the place of such a worker, once it is gone. */
static bool gives_its_place(enum reason reason)
{
        return reason == REASON_RESTART || reason == REASON_ROLLBACK;
}

static void count_workers(struct round *round)
{
        FLEET_FOREACH_WORKER(round->fleet, worker) {
                worker->verdict.retire_reason = REASON_NONE;
                worker->verdict.waits_for = WAIT_NONE;
                worker->verdict.waits_count = 0;
                if (worker->state == WORKER_GONE)
                        continue;
                round->live++;
                if (worker->state > WORKER_ACTIVE) {
                        round->draining_for_restart += gives_its_place(worker->reason);
                        round->hang_ended |=
                                worker->state == WORKER_STOPPING && worker->reason == REASON_HUNG;
                        continue;
                }
                round->starting += is_starting(worker);
                round->active += counts_as_active(worker);
                round->elsewhere += is_elsewhere(worker);
                round->title_ready += worker_title_ready(worker, round->now);
                round->hung += worker_hangs(worker);
                round->ready += worker_ready(worker, round->now);
                worker->verdict.retire_reason = unwanted_for(worker, round->now);
                round->keepers += worker->verdict.retire_reason == REASON_NONE && !worker_hangs(worker);
                round->starting_outdated +=
                        is_starting(worker) && worker->verdict.retire_reason == REASON_RESTART;
        }
}

/* A requested fork counts as a starting worker. */
static void count_forks(struct round *round)
{
        const struct fleet *fleet = round->fleet;

        FLEET_FOREACH_TEMPLATE(fleet, template) {
                bool outdated = template->generation != fleet->generation &&
                                fleet->rollout.state == ROLLOUT_RUNNING && fleet->rollout.limit == 0;

                if (!template_forks(template))
                        continue;
                round->forks = true;
                round->live++;
                round->starting++;
                round->starting_outdated += outdated;
                round->keepers += !outdated;
        }
}

static int compare(uint64_t a, uint64_t b)
{
        return (a > b) - (a < b);
}

static bool is_new(const struct worker *worker)
{
        /* A worker that has sent no heartbeat, or only its first, is still new. If it is to leave, it is
         * quieted at that heartbeat. */
        if (is_elsewhere(worker))
                return false;
        return worker->state == WORKER_STARTING || worker->heartbeat.changed_at <= worker->active_at;
}

/* The order in which workers leave. A total order, so each plan chooses the same workers. */
static int compare_leavers(const void *left, const void *right)
{
        const struct worker *a = *(struct worker *const *)left, *b = *(struct worker *const *)right;
        enum rollout_state rollout = a->fleet->rollout.state;
        int order = compare(is_urgent(b), is_urgent(a));

        bool limited = rollout == ROLLOUT_RUNNING && a->fleet->rollout.limit > 0;
        if (order == 0 && (limited || rollout == ROLLOUT_HALTED || rollout == ROLLOUT_ABORTED) &&
            !a->fleet->rollout.returned)
                order = compare(worker_outdated(a), worker_outdated(b));
        if (order == 0)
                order = compare(worker_is_of_failed_try(b), worker_is_of_failed_try(a));
        if (order == 0)
                order = compare(is_new(b), is_new(a));
        if (order == 0)
                order = compare(b->memory.over_threshold, a->memory.over_threshold);
        if (order == 0)
                order = compare(worker_outdated(b), worker_outdated(a));
        /* The number of jobs decides only when scaling down. */
        if (order == 0 && fleet_scales(a->fleet) && a->verdict.retire_reason == REASON_NONE)
                order = compare(a->heartbeat.busy, b->heartbeat.busy);
        if (order == 0)
                order = compare(a->spawned_at, b->spawned_at);
        return order != 0 ? order : compare(a->index, b->index);
}

/* Gathers the starting and active workers that are to leave, or those that are not, in the order of leaving.
 */
static size_t gather_leavers(struct round *round, bool retire_reason)
{
        struct plan *plan = round->plan;
        struct fleet *fleet = round->fleet;
        size_t n = 0;

        if (plan->scratch_allocated < fleet->n_workers) {
                struct worker **scratch = realloc(plan->scratch, fleet->n_workers * sizeof(struct worker *));

                if (!scratch) {
                        round->error = -ENOMEM;
                        return 0;
                }
                plan->scratch = scratch;
                plan->scratch_allocated = fleet->n_workers;
        }
        FLEET_FOREACH_WORKER(fleet, worker)
                if (worker->state <= WORKER_ACTIVE &&
                    (!worker_hangs(worker) || (retire_reason && is_asked_in_silence(worker, round->now))) &&
                    (worker->verdict.retire_reason != REASON_NONE) == retire_reason)
                        plan->scratch[n++] = worker;
        if (n > 1)
                qsort(plan->scratch, n, sizeof(struct worker *), compare_leavers);
        return n;
}

/* As long as the new workers of a restart are limited, as many old ones stay as the limit leaves places. A
 * worn out one stays unless its replacement can be of the old release. */
static void limit_restart(struct round *round)
{
        const struct rollout *rollout = &round->fleet->rollout;
        bool forks_old = fleet_template_kept(round->fleet) && !round->fleet->preload.unrecorded;
        unsigned stay = usec_sub(round->target, rollout->limit);

        if (rollout->state != ROLLOUT_RUNNING || rollout->limit == 0 || stay == 0)
                return;
        for (size_t n = gather_leavers(round, true); n > 0 && stay > 0; n--) {
                struct worker *worker = round->plan->scratch[n - 1];

                if (worker->verdict.retire_reason != REASON_RESTART)
                        continue;
                worker->verdict.retire_reason = forks_old ? worn_out(worker, round->now) : REASON_NONE;
                round->starting_outdated -= is_starting(worker);
                if (worker->verdict.retire_reason != REASON_NONE)
                        continue;
                round->keepers++;
                stay--;
        }
}

static void choose_surplus(struct round *round)
{
        if (round->keepers <= round->target)
                return;
        size_t n = gather_leavers(round, false);
        for (size_t i = 0; i < n && round->keepers > round->target; i++, round->keepers--)
                /* A worker that has refused to be quiet keeps its reason. */
                round->plan->scratch[i]->verdict.retire_reason =
                        rollout_kept_reason(round->plan->scratch[i]) ?: REASON_SCALE;
}

/* Returns why a worker that is to leave may not be quieted now; WAIT_NONE: it may. */
static enum wait quiet_wait(struct round *round, struct worker *worker)
{
        enum wait wait =
                is_asked_in_silence(worker, round->now) ? WAIT_NONE : evidence_wait(worker, round->now);
        bool ready = worker_ready(worker, round->now);
        unsigned others = round->ready - ready, needed = round->target;

        if (is_starting(worker))
                return worker->verdict.waits_for; /* set by plan_boot() */
        if (wait != WAIT_NONE)
                return wait;
        /* Do not quiet a worker if nothing could show the end of its jobs: it could never be stopped. */
        if (worker->process.elsewhere && !worker_title_can_prove(worker))
                return WAIT_ELSEWHERE;
        /* For a worker whose heartbeat is elsewhere, other such workers count as ready by their titles. */
        if (worker->process.elsewhere)
                others += round->title_ready - worker_title_ready(worker, round->now);
        /* Without a record of the stop signal, the next sqmgr would send a second one, which ends jobs. */
        if (round->fleet->world->ledger_volatile && worker_quiet_is_stop(worker) &&
            (!is_urgent(worker) || worker->verdict.retire_reason == REASON_ROLLBACK))
                return WAIT_LEDGER;
        if (is_urgent(worker))
                return WAIT_NONE;
        if (worker->verdict.retire_reason == REASON_RESTART) {
                if (rollout_is_held(round->fleet) || round->fails)
                        return WAIT_RELEASE;
                if (fleet_awaits_template(round->fleet))
                        return WAIT_TEMPLATE;
        }
        if (gives_its_place(worker->verdict.retire_reason) && round->surge == 0 && round->starting == 0 &&
            round->draining_for_restart == 0 && needed > 0)
                needed--;
        if (others >= needed)
                return WAIT_NONE;
        worker->verdict.waits_count = needed - others;
        return WAIT_READY_OTHERS;
}

/* Rule 2: quiet workers. */
static void plan_quiets(struct round *round)
{
        size_t n = gather_leavers(round, true);

        for (size_t i = 0; i < n; i++) {
                struct worker *worker = round->plan->scratch[i];

                /* plan_each() stops it. */
                if (worker->orders.forced)
                        continue;
                worker->verdict.waits_for = quiet_wait(round, worker);
                if (worker->verdict.waits_for != WAIT_NONE)
                        continue;
                round->ready -= worker_ready(worker, round->now);
                round->active -= counts_as_active(worker);
                round->title_ready -= worker_title_ready(worker, round->now);
                round->draining_for_restart += gives_its_place(worker->verdict.retire_reason);
                act(round, ACTION_QUIET, worker, worker->verdict.retire_reason);
                if (worker_may_take_job(worker, round->now))
                        worker->verdict.waits_for = WAIT_IDLE_CHECK;
        }
}

/* For a worker that quieting stops, the exit is the proof of idleness, so only the deadline is to be
 * enforced. From the deadline on the worker counts as asked to exit, and may be killed. */
static void plan_drain(struct round *round, struct worker *worker, usec_t overdue)
{
        if (round->now >= overdue)
                act(round, ACTION_STOP, worker, worker->reason);
        else
                worker->verdict.waits_for = worker->orders.unconfirmed   ? WAIT_UNCONFIRMED
                                            : worker->heartbeat.busy > 0 ? WAIT_JOBS
                                                                         : WAIT_EXIT;
}

/* Rule 3: stop workers that are proven idle, or past their deadline. */
static void plan_stop(struct round *round, struct worker *worker)
{
        enum wait wait = evidence_wait(worker, round->now);
        usec_t overdue = worker_cut_off(worker).at;
        /* Without a process that sends heartbeats there is no heartbeat to wait for. */
        bool evident = wait == WAIT_NONE || (worker->process.heartbeat_pid == 0 && wait != WAIT_REDIS);

        round_wake(round, overdue);
        if (worker_drains_to_exit(worker))
                plan_drain(round, worker, overdue);
        else if (!evident)
                worker->verdict.waits_for = wait;
        else if (worker_proven_idle(worker) || worker_proven_interruptible(worker) || round->now >= overdue)
                act(round, ACTION_STOP, worker, worker->reason);
        else if (worker->heartbeat.ambiguous)
                worker->verdict.waits_for = WAIT_AMBIGUOUS;
        else if (worker->heartbeat.not_quiet_count >= WORKER_NOT_QUIET_HEARTBEATS &&
                 !worker_contradicted(worker))
                act(round, ACTION_QUIET, worker, worker->reason);
        else if (worker->heartbeat.busy > 0)
                worker->verdict.waits_for = WAIT_JOBS;
        else
                worker->verdict.waits_for = worker_proof_wait(worker, &worker->verdict.waits_count);
}

/* Plans for the leftover process of a worker that was asked to exit and whose process that sent heartbeats
 * has ended. A wrapper gets a stop signal before it is killed. A process that has booted since was not asked
 * to exit and may run jobs: as long as it sends no heartbeat, only an operator's order stops it. */
static void plan_remainder(struct round *round, struct worker *worker, usec_t at)
{
        bool forced = round->now >= worker_forced_at(worker);

        if (forced && !worker->orders.group_signaled)
                act(round, ACTION_STOP, worker, worker->reason);
        else if (!forced && worker->process.booted)
                worker->verdict.waits_for = WAIT_SUCCESSOR;
        else if (round->now >= at && (forced || worker->process.boot_polled_at >= at))
                act(round, worker->orders.group_signaled ? ACTION_KILL : ACTION_STOP, worker, worker->reason);
}

/* Bounds the exit of a worker that was asked to exit. */
static void plan_kill(struct round *round, struct worker *worker)
{
        const struct fleet *fleet = round->fleet;
        usec_t at = worker_kill_at(worker), repeat_at = worker_repeat_stop_at(worker);

        if (!fleet->redis_up && !fleet->world->shutting_down && !fleet->force && !worker->orders.forced) {
                worker->verdict.waits_for = WAIT_REDIS;
                return;
        }
        worker->verdict.waits_for = worker->orders.unconfirmed ? WAIT_UNCONFIRMED : WAIT_EXIT;
        round_wake(round, MIN(at, repeat_at));
        if (worker_is_remainder(worker))
                plan_remainder(round, worker, at);
        else if (round->now >= at || round->now >= repeat_at)
                act(round, round->now >= at ? ACTION_KILL : ACTION_STOP, worker, worker->reason);
}

/* Returns true if hang_action = kill applies: the worker is asked to exit, and killed after stop_timeout.
 * Redis must have been shown to accept heartbeats, by another worker that has sent them for long enough; or
 * no further worker can be started to show that. */
static bool hang_ends(struct round *round, const struct worker *worker)
{
        const struct fleet *fleet = round->fleet;

        if (!worker->heartbeat.hung || fleet->settings->hang_action != HANG_KILL ||
            !worker_silent_too_long(worker, round->now))
                return false;
        if (fleet->fresh_since != 0)
                return round->now >= usec_add(fleet->fresh_since, worker_stale_usec(worker));
        if (fleet->waits_for != WAIT_PLACES || round->live < round->max ||
            round->starting + round->elsewhere > 0 || round->starts || round->hang_ended)
                return false;
        round->hang_ended = true;
        return true;
}

/* A worker without heartbeats is stopped after boot_timeout, but only if it is known to have failed to boot.
 */
static void plan_boot(struct round *round, struct worker *worker)
{
        usec_t deadline = worker_boot_deadline(worker);

        if (worker->process.awaits_go) {
                worker->verdict.waits_for = WAIT_STATE;
                /* The fork has done nothing yet: a worker that boots separately replaces it. */
                if (round->fleet->preload.unrecorded)
                        act(round, ACTION_STOP, worker, REASON_SCALE);
                else
                        act(round, ACTION_GO, worker, REASON_NONE);
                return;
        }
        if (!round->fleet->redis_up) {
                worker->verdict.waits_for = WAIT_REDIS;
                return;
        }
        worker->verdict.waits_for = worker->heartbeat.ambiguous ? WAIT_AMBIGUOUS
                                    : worker->process.booted    ? WAIT_ELSEWHERE
                                    : worker->process.unseen    ? WAIT_UNSEEN
                                                                : WAIT_FIRST_HEARTBEAT;
        round_wake(round, deadline);
        if (round->now >= deadline && worker->process.boot_polled_at >= deadline && !worker->process.booted &&
            !worker->heartbeat.ambiguous && worker_boot_has_failed(worker)) {
                round->fails |= !worker_outdated(worker) && !worker->process.unproven;
                act(round, ACTION_STOP, worker, REASON_BOOT);
        }
}

/* Returns true while an unproven process may still turn out to be a worker. An order to stop it waits until
 * then: such a process gets no signal, and if sqmgr forgot it, it could boot later, unknown to sqmgr. */
static bool is_awaited(const struct round *round, const struct worker *worker)
{
        return worker->process.unproven && !round->fleet->world->shutting_down &&
               round->now < worker_boot_deadline(worker);
}

static void plan_each(struct round *round)
{
        enum reason reason = round->fleet->world->shutting_down ? REASON_SHUTDOWN : REASON_OPERATOR;

        round_wake(round, fleet_forced_at(round->fleet));
        FLEET_FOREACH_WORKER(round->fleet, worker) {
                usec_t forced = worker_forced_at(worker);

                if (worker->state < WORKER_STOPPING && round->now >= forced && !is_awaited(round, worker))
                        act(round, ACTION_STOP, worker, reason);
                else if (worker->state == WORKER_STOPPING)
                        plan_kill(round, worker);
                else if (hang_ends(round, worker))
                        act(round, ACTION_STOP, worker, REASON_HUNG);
                else if (worker->state == WORKER_QUIET)
                        plan_stop(round, worker);
                else if (worker->state == WORKER_STARTING)
                        plan_boot(round, worker);
                else if (worker->state == WORKER_ACTIVE) {
                        round_wake(round, worker_ready_at(worker));
                        enum wait wait = evidence_wait(worker, round->now);
                        if (wait == WAIT_HUNG ||
                            (worker->verdict.retire_reason == REASON_NONE && wait == WAIT_STALE))
                                worker->verdict.waits_for = wait;
                }
        }
        if (round->now < fleet_forced_at(round->fleet))
                plan_quiets(round);
}

static int plan_fleet(struct plan *plan, struct fleet *fleet, usec_t now)
{
        struct round round = {
                .plan = plan,
                .fleet = fleet,
                .now = now,
                .target = fleet_target(fleet),
                .max = fleet_max_processes(fleet),
                .surge = fleet_surge(fleet),
        };

        count_workers(&round);
        fleet->short_since = round.active >= round.target ? 0 : fleet->short_since ?: now;
        count_forks(&round);
        limit_restart(&round);
        choose_surplus(&round);
        plan_starts(&round);
        plan_templates(&round);
        plan_each(&round);
        /* A shortage lasts until a start succeeds. */
        if (fleet->waits_for == WAIT_NONE &&
            ((round.forks && fleet->preload.retry_at != 0) || (round.starts && fleet->shortage.count > 0)))
                fleet->waits_for = WAIT_FORK;
        else if (!fleet->redis_up && fleet->waits_for == WAIT_NONE && round.live > 0)
                fleet->waits_for = WAIT_REDIS;
        else if (fleet->waits_for == WAIT_NONE && rollout_is_held(fleet))
                fleet->waits_for = WAIT_RELEASE;
        else if (fleet->waits_for == WAIT_NONE && fleet_is_limited(fleet))
                fleet->waits_for = WAIT_TRIAL;
        return round.error;
}

bool plan_has(const struct plan *plan, enum action_kind kind)
{
        for (size_t i = 0; i < plan->n_actions; i++)
                if (plan->actions[i].kind == kind)
                        return true;
        return false;
}

int plan_make(struct plan *plan, struct world *world, usec_t now)
{
        int error = 0;

        plan->n_actions = 0;
        plan->reserved_known = false;
        plan->reserved_bytes = 0;
        plan->wake_at = USEC_INFINITY;
        WORLD_FOREACH_FLEET(world, fleet) {
                int r = plan_fleet(plan, fleet, now);

                if (r < 0)
                        error = r;
        }
        return error;
}
