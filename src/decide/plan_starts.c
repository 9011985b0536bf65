/* SPDX-License-Identifier: MIT */
/* Decides what is started, and which templates end; see the header. */
#include "decide/plan_starts.h"
#include "model/memory.h"
#include "model/preload.h"
#include "model/rollout.h"
#include "model/worker_facts.h"
#include "model/world.h"
#include <errno.h>
#include <limits.h>

void round_add(struct round *round, struct action action)
{
        struct plan *plan = round->plan;

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

static uint64_t expected_bytes(struct round *round)
{
        if (!round->expected_known)
                round->expected_bytes = memory_expected_bytes(round->fleet);
        round->expected_known = true;
        return round->expected_bytes;
}

/* Returns the memory reserved so far, including the starts of this plan. Computed once per plan. */
static uint64_t reserved_bytes(struct round *round)
{
        struct plan *plan = round->plan;
        const struct fleet *fleet = NULL;
        uint64_t expected = 0;

        if (plan->reserved_known)
                return plan->reserved_bytes;
        plan->reserved_known = true;
        plan->reserved_bytes = memory_reserved_bytes(round->fleet->world, round->now);
        for (size_t i = 0; i < plan->n_actions; i++) {
                if (plan->actions[i].kind == ACTION_LOAD)
                        plan->reserved_bytes += fleet_template_bytes(plan->actions[i].fleet);
                if (plan->actions[i].kind != ACTION_START)
                        continue;
                if (plan->actions[i].fleet != fleet)
                        expected = memory_expected_bytes(plan->actions[i].fleet);
                fleet = plan->actions[i].fleet;
                plan->reserved_bytes += expected;
        }
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

/* Rule 1: start workers. */
void plan_starts(struct round *round)
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
                if (round->plan->reserved_known)
                        round->plan->reserved_bytes += expected_bytes(round);
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

/* plan_starts() sets the wait of starts, but not the wait of templates. */
void plan_templates(struct round *round)
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
        if (round->plan->reserved_known)
                round->plan->reserved_bytes += fleet_template_bytes(fleet);
}
