/* SPDX-License-Identifier: MIT */
/* A world of tests/sim as the core of one host; see the header. */
#include "core.h"
#include "../sim/story.h"
#include "model/worker_facts.h"
#include "model/world.h"
#include <stdio.h>
#include <string.h>

struct core {
        struct sim sim;
        char name[16];   /* the host in the printed story; "": no story is printed */
        usec_t begun_at; /* start of the world's own time, in the group's time */
        bool cut_off;    /* Redis cannot be reached */
        uint64_t n_saved;
        char error[ROLLOUT_ERROR_MAX];
        enum rollout_state rollout;
        uint64_t generation; /* the generation of its last restart */
        char broken[600];
};

/* Returns true for acts that a host does not get from its own schedule: the group applies faults of the host
 * and of the shared Redis, and a stopped fleet could not restart. */
static bool is_the_groups(enum act_kind kind)
{
        switch (kind) {
        case ACT_REDIS_DOWN:
        case ACT_REDIS_FAILOVER:
        case ACT_REDIS_EMPTIED:
        case ACT_STALL:
        case ACT_PAUSE:
        case ACT_SQMGR_KILL:
        case ACT_FORK_KILLS_SQMGR:
        case ACT_TEMPLATE_FREEZE:
        case ACT_STOP:
        case ACT_STOP_FORCE:
        case ACT_SHUTDOWN:
                return true;
        default:
                return false;
        }
}

static void open_world(struct core *core, uint64_t seed, usec_t now)
{
        struct sim *sim = &core->sim;

        sim_open(sim, &(struct origin){.seed = seed});
        core->begun_at = now - sim->begun_at;
        sim->calm_at = sim->end_at = USEC_INFINITY;
        sim->fleets[0].settings[1].removed = false;
        /* A release that is judged worse halts: the next order would not be done. */
        for (unsigned i = 0; i < sim->n_fleets; i++)
                sim->fleets[i].trial.tries = false;
        /* No clones here: tests/sim relies on its own schedule to leave out processes that cannot be
         * distinguished. */
        sim->cloned = false;
        sim->n_clones = 0;
        for (size_t i = 0; i < sim->n_acts; i++)
                sim->acts[i].left_out = is_the_groups(sim->acts[i].kind);
        if (core->name[0] != '\0')
                story_begin(sim, core->name);
}

static void close_world(struct core *core)
{
        story_end(&core->sim);
        sim_close(&core->sim);
}

struct core *core_new(uint64_t seed, usec_t now, const char *name)
{
        struct core *core = calloc(1, sizeof(*core));

        if (!core)
                abort();
        snprintf(core->name, sizeof(core->name), "%s", name ?: "");
        open_world(core, seed, now);
        return core;
}

struct core *core_free(struct core *core)
{
        if (!core)
                return NULL;
        close_world(core);
        free(core);
        return NULL;
}

static struct fleet *fleet_of(const struct core *core)
{
        return core->sim.shell.running ? core->sim.shell.world->fleets[0] : NULL;
}

static void remember(struct core *core)
{
        const struct fleet *fleet = fleet_of(core);

        if (!fleet)
                return;
        core->rollout = fleet->rollout.state;
        snprintf(core->error, sizeof(core->error), "%s", fleet->rollout.error);
}

static void befall(struct core *core, enum act_kind kind, uint64_t a)
{
        act_apply(&core->sim, &(struct act){.kind = kind, .a = a});
        remember(core);
}

void core_run(struct core *core, usec_t now, bool reaches)
{
        struct sim *sim = &core->sim;

        if (!reaches && !core->cut_off)
                befall(core, ACT_REDIS_DOWN, USEC_PER_DAY);
        else if (reaches && core->cut_off)
                sim->down_until = sim->now;
        core->cut_off = !reaches;
        sim_run_to(sim, now - core->begun_at);
        remember(core);
        if (sim->broken)
                snprintf(core->broken, sizeof(core->broken), "%s: %s", sim->invariant, sim->detail);
}

const char *core_broken(const struct core *core)
{
        return core->broken[0] != '\0' ? core->broken : NULL;
}

bool core_restart(struct core *core, bool bad)
{
        befall(core, bad ? ACT_RELEASE_BAD : ACT_RELEASE_GOOD, 0);
        befall(core, ACT_RESTART, 0);
        if (!fleet_of(core))
                return true;
        core->generation = fleet_of(core)->generation;
        return fleet_order(fleet_of(core)) == ORDER_RUN;
}

void core_abort(struct core *core)
{
        befall(core, ACT_ABORT, 0);
}

enum rollout_state core_rollout(const struct core *core, const char **ret_error)
{
        *ret_error = core->error;
        return core->rollout;
}

unsigned core_outdated(const struct core *core)
{
        const struct fleet *fleet = fleet_of(core);
        unsigned n = 0;

        for (size_t i = 0; fleet && i < fleet->n_workers; i++)
                n += fleet->workers[i]->state <= WORKER_ACTIVE && !fleet->workers[i]->heartbeat.hung &&
                     !worker_is_unseen(fleet->workers[i]) && fleet->workers[i]->generation < core->generation;
        return n;
}

bool core_save(struct core *core)
{
        if (!core->sim.shell.running || !shell_save(&core->sim))
                return false;
        core->sim.shell.pass.unsaved = false;
        return true;
}

bool core_was_saved(struct core *core)
{
        bool was = core->sim.shell.n_written != core->n_saved;

        core->n_saved = core->sim.shell.n_written;
        return was;
}

bool core_kill(struct core *core, bool lost)
{
        struct shell *shell = &core->sim.shell;

        if (!shell->running || shell->behind)
                return false;
        shell->kill_fate = lost;
        /* With the state, sqmgr loses the generation of its last restart. */
        if (lost)
                core->generation = 0;
        shell->down_usec = USEC_PER_DAY;
        shell->deaths++;
        shell_die(&core->sim);
        return true;
}

void core_begin(struct core *core)
{
        if (!core->sim.shell.running)
                core->sim.shell.start_at = core->sim.now;
}

void core_reboot(struct core *core)
{
        uint64_t seed = rng_next(&core->sim.rng);
        usec_t now = core->sim.now + core->begun_at;

        close_world(core);
        open_world(core, seed, now);
        core->sim.shell.start_at = USEC_INFINITY;
        core->cut_off = false;
        core->n_saved = core->generation = 0;
        core->rollout = ROLLOUT_NONE;
}

void core_freeze(struct core *core, usec_t until, bool machine)
{
        struct sim *sim = &core->sim;

        befall(core, machine ? ACT_PAUSE : ACT_STALL, usec_sub(until - core->begun_at, sim->now));
}

void core_redis_failed_over(struct core *core)
{
        redis_fail_over(&core->sim, 1);
}

void core_redis_was_emptied(struct core *core)
{
        redis_empty(&core->sim);
}

void core_calm(struct core *core)
{
        core->cut_off = false;
        core->sim.next_act = core->sim.n_acts;
        act_calm(&core->sim);
        /* sqmgr gives up to preload a release after three attempts, for which a short rollout_timeout has no
         * time: the next order would be halted. */
        for (size_t i = 0; i < FLEETS_MAX; i++)
                core->sim.fleets[i].good.unhooked = core->sim.fleets[i].release.unhooked = 0;
        remember(core);
}

bool core_is_settled(struct core *core, bool must)
{
        bool settled = check_settled(&core->sim, must);

        if (core->sim.broken)
                snprintf(core->broken, sizeof(core->broken), "%s: %s", core->sim.invariant, core->sim.detail);
        return settled;
}
