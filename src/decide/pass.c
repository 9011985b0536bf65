/* SPDX-License-Identifier: MIT */
/* A pass over all fleets. No I/O, no clock: the caller provides both. */
#include "decide/pass.h"
#include "model/deadlines.h"
#include "model/world.h"
#include "observe/observe.h"

#define FAST_POLL_USEC (250 * USEC_PER_MSEC)
/* Follow-up actions are planned in the same pass, but the number of rounds is bounded. */
#define ROUNDS_MAX 4
/* How long the rest of a pass waits after a start. Until a new process executes its command, it shares memory
 * and often the processor with this one: each page written meanwhile would have to be copied. */
#define DEFER_USEC (10 * USEC_PER_MSEC)

enum pass_poll pass_poll(struct pass *pass, usec_t now)
{
        if (now < pass->poll_at)
                return PASS_POLL_NONE;
        pass->poll_at = USEC_INFINITY;
        if (now < usec_add(pass->regular_at, pass->world->settings->check_interval))
                return PASS_POLL_FAST;
        pass->regular_at = now;
        pass->n_regular++;
        return PASS_POLL_REGULAR;
}

/* The model may differ from the saved state. */
static bool has_news(const struct pass *pass)
{
        return pass->unsaved || pass->world->n_events > 0;
}

static bool save(struct pass *pass, const struct pass_ops *ops, usec_t now, void *userdata)
{
        bool saved = ops->save(now, userdata);

        observe_saved(pass->world, saved, now);
        pass->unsaved = !saved;
        return saved;
}

/* Executes the plan once. Returns true if an action changed something. */
static bool run_round(struct pass *pass, const struct pass_ops *ops, usec_t now, void *userdata)
{
        bool starts = plan_has(&pass->plan, ACTION_START), saved = true, changed = false;

        if (pass->world->ledger_volatile && has_news(pass) && plan_has(&pass->plan, ACTION_GO))
                saved = save(pass, ops, now, userdata);
        for (size_t i = 0; i < pass->plan.n_actions; i++)
                /* A forked worker may continue only once the state is saved: the next sqmgr could not find it
                 * by its environment. */
                if (saved || pass->plan.actions[i].kind != ACTION_GO)
                        changed |= ops->execute(&pass->plan.actions[i], now, userdata);
        pass->unsaved |= changed;
        /* Poll at once: a heartbeat that is read before the new processes can have booted is not theirs. */
        if (changed && starts)
                pass->poll_at = now;
        return changed;
}

/* The state may be saved later if the ledger names the starts. Further starts do not postpone it again. */
static bool defer(struct pass *pass, usec_t now)
{
        if (pass->world->ledger_volatile || !plan_has(&pass->plan, ACTION_START))
                return false;
        if (pass->deferred_until == 0)
                pass->deferred_until = usec_add(now, DEFER_USEC);
        return now < pass->deferred_until;
}

int pass_run(struct pass *pass, const struct pass_ops *ops, const struct pass_clocks *clocks, void *userdata)
{
        struct world *world = pass->world;
        usec_t now = clocks->monotonic;
        bool more = true;
        int r = 0;

        pass->serial++;
        observe_clocks(world, now, clocks->boottime, clocks->realtime);
        for (unsigned round = 0; more && round < ROUNDS_MAX; round++) {
                WORLD_FOREACH_FLEET(world, fleet)
                        fleet_reap(fleet, ops->release);
                observe_time(world, now);
                r = plan_make(&pass->plan, world, now) < 0 ? -ENOMEM : r;
                more = run_round(pass, ops, now, userdata);
                if (more && defer(pass, now))
                        return r;
        }
        pass->deferred_until = 0;
        if (has_news(pass))
                (void)save(pass, ops, now, userdata);
        return r;
}

bool pass_is_deferred(const struct pass *pass)
{
        return pass->deferred_until != 0;
}

usec_t pass_wake_at(struct pass *pass, usec_t now)
{
        const struct world *world = pass->world;

        if (pass_is_deferred(pass)) {
                pass->calm = false;
                return MAX(pass->deferred_until, now + USEC_PER_MSEC);
        }
        usec_t at = usec_add(pass->regular_at, world->settings->check_interval);

        pass->calm = true;
        WORLD_FOREACH_FLEET(world, fleet)
                pass->calm &= !fleet_wants_fast_polls(fleet, now);
        if (!pass->calm)
                at = MIN(at, usec_add(now, FAST_POLL_USEC));
        /* A pass before the time of the poll must not postpone the poll. */
        pass->poll_at = MIN(at, pass->poll_at);
        return MAX(MIN(pass->poll_at, pass->plan.wake_at), now + USEC_PER_MSEC);
}
