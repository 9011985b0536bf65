/* SPDX-License-Identifier: MIT */
/* Makes a world and its schedule from a seed, or from bytes. */
#include "autoscaling/autoscale_rules.h"
#include "continuity/adoption.h"
#include "model/fleets.h"
#include "model/world.h"
#include "sim.h"

#define SEC USEC_PER_SEC

static uint64_t pick(struct rng *rng, const uint64_t *choices, size_t n)
{
        return choices[rng_range(rng, 0, n - 1)];
}
#define PICK(rng, ...)                                                                                       \
        pick(rng, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* Chooses the framework of a fleet, and the settings that the framework leaves open. */
static void make_framework(uint64_t seed, unsigned number, struct fleet_sim *fleet)
{
        struct rng rng = rng_fork(seed, 100 + number), programs = rng_fork(seed, 8000 + number);
        const struct traits *traits;

        fleet->behavior = behavior_choose(&rng, &traits);
        fleet->untitled = traits->has_title && rng_chance(&programs, 150);
        int heartbeat = traits->heartbeat_chosen && rng_chance(&rng, 300) ? HEARTBEAT_FILE : HEARTBEAT_UNSET;
        bool bounded = traits->stop_chosen && rng_chance(&rng, 500);
        for (unsigned i = 0; i < ELEMENTSOF(fleet->settings); i++) {
                fleet->settings[i].traits = traits;
                fleet->settings[i].heartbeat = heartbeat;
                fleet->settings[i].stop_bounded = bounded;
        }
        /* A worker that ignores its only signal would drain forever. */
        if (traits->quiet_is_stop && !bounded)
                fleet->good.deaf = 0;
        if (traits->heartbeat == HEARTBEAT_NONE) {
                /* Without heartbeats, the started process is the worker. */
                fleet->good.wrapped = 0;
        }
        fleet->release = fleet->good;
}

static void make_release(struct rng *rng, struct release *release)
{
        *release = (struct release){
                .boot_min = PICK(rng, 0, 1, 5) * SEC,
                .boot_max = PICK(rng, 5, 10, 30, 60) * SEC,
                .wrapped = (unsigned)PICK(rng, 0, 0, 0, 50, 100),
                .deaf = (unsigned)PICK(rng, 0, 0, 0, 10),
                .native_thread = (unsigned)PICK(rng, 0, 0, 30, 100),
                .late_heartbeats = (unsigned)PICK(rng, 0, 5, 50),
                .double_heartbeats = (unsigned)PICK(rng, 0, 5, 30),
                .slow_trips = (unsigned)PICK(rng, 0, 5, 50),
                .heartbeat_interval = PICK(rng, 5, 5, 10) * SEC,
                .shutdown_usec = PICK(rng, 8, 25, 25, 50) * SEC,
                .job_gap = PICK(rng, 1, 3, 10, 30, 120) * SEC,
                .long_jobs = (unsigned)PICK(rng, 0, 1, 5, 20),
                .endless_jobs = (unsigned)PICK(rng, 0, 0, 0, 2),
                .long_max = PICK(rng, 1, 5, 20, 60) * USEC_PER_MIN,
                .base_bytes = PICK(rng, 100, 200, 400) * MEGABYTE,
                .leak_per_sec = PICK(rng, 0, 0, 0, 100, 400) * 1024,
        };
}

static void make_settings(struct rng *rng, const struct release *release, struct fleet_settings *settings)
{
        unsigned count = (unsigned)PICK(rng, 1, 1, 2, 2, 3, 5);

        *settings = (struct fleet_settings){
                .active_process_count = count,
                .restart_surge = {.value = (uint32_t)PICK(rng, 100, 100, 100, 50, 0), .percent = true},
                .ready_after = PICK(rng, 30, 30, 10, 1, 90) * SEC,
                .boot_timeout = PICK(rng, 120, 120, 70) * SEC,
                .rollout_timeout = PICK(rng, 10, 10, 4) * USEC_PER_MIN,
                .stop_timeout = PICK(rng, 60, 60, 60, 90) * SEC,
                .hang_after = PICK(rng, 300, 300, 60, 30, 0) * SEC,
                .hang_action = (int)PICK(rng, HANG_KEEP, HANG_KEEP, HANG_KILL),
        };
        if (rng_chance(rng, 150))
                settings->restart_surge = (struct share){.value = 1};
        if (rng_chance(rng, 400))
                settings->max_processes = count + 1 + (unsigned)rng_range(rng, 0, count);
        if (rng_chance(rng, 400))
                settings->memory_threshold = release->base_bytes + PICK(rng, 50, 150, 400) * MEGABYTE;
        if (rng_chance(rng, 200))
                settings->memory_limit = release->base_bytes + PICK(rng, 500, 1000) * MEGABYTE;
        if (rng_chance(rng, 150))
                settings->max_age = PICK(rng, 10, 30, 90) * USEC_PER_MIN;
        if (rng_chance(rng, 120))
                settings->drain_timeout = PICK(rng, 3, 10) * USEC_PER_MIN;
}

/* Returns a choice among processes; the modulo is taken when the act happens. */
static uint64_t make_choice(struct rng *rng)
{
        return rng->left > 0 ? rng_draw(rng, UINT16_MAX) : rng_next(rng) >> 8;
}

/* Faults last from an instant to minutes; most are short. */
static usec_t make_span(struct rng *rng, enum act_kind kind)
{
        switch (kind) {
        case ACT_STALL:
        case ACT_PAUSE:
                return rng_range(rng, 0, PICK(rng, 2, 12, 30, 120) * SEC);
        case ACT_SUSPEND:
        case ACT_CLOCK_STEP:
                return rng_range(rng, 0, PICK(rng, 2, 60, 3600, 86400) * SEC);
        case ACT_SQMGR_KILL:
                return rng_range(rng, 0, PICK(rng, 1, 5, 60, 600) * SEC);
        case ACT_REDIS_DOWN:
        case ACT_REDIS_SILENT:
        case ACT_REDIS_FROZEN:
                return rng_range(rng, 0, PICK(rng, 3, 20, 90, 600) * SEC);
        case ACT_FORK_FAILS:
        case ACT_PROC_FAILS:
        case ACT_DISK_FULL:
        case ACT_REDIS_GARBAGE:
        case ACT_REDIS_LAGS:
        case ACT_REDIS_SLOW:
                return rng_range(rng, 0, PICK(rng, 5, 60, 300) * SEC);
        default:
                return make_choice(rng);
        }
}

static enum act_kind make_kind(struct rng *rng)
{
        /* More restarts than other acts: most can go wrong there. */
        if (rng_chance(rng, 180))
                return ACT_RESTART;
        return (enum act_kind)rng_range(rng, 0, ACT_SHUTDOWN);
}

static void make_schedule(struct sim *sim)
{
        struct rng *rng = &sim->rng;
        usec_t span = sim->calm_at - sim->begun_at, at = 0;

        size_t n = PICK(rng, 2, 4, 8, 16, 24, SCHEDULE_MAX);
        for (size_t i = 0; i < n; i++) {
                struct act act = {.kind = make_kind(rng)};

                /* Faults often coincide. */
                at = i > 0 && rng_chance(rng, 500) ? sim->acts[i - 1].at - sim->begun_at +
                                                             rng_range(rng, 0, PICK(rng, 1, 10, 60) * SEC)
                                                   : rng_range(rng, 0, span);
                act.at = sim->begun_at + MIN(at, span - 1);
                act.a = make_span(rng, act.kind);
                act.b = make_choice(rng);
                act.c = make_choice(rng);
                if (act.kind == ACT_WORKER_HANG)
                        act.b = rng_range(rng, 0, PICK(rng, 10, 60, 600, 3600) * SEC);
                act_add(sim, &act);
        }
}

/* All active workers that are wanted have room, and a few more. */
static uint64_t make_memory(struct sim *sim)
{
        struct rng *rng = &sim->rng;
        uint64_t bytes = PICK(rng, 100, 300, 600, 1200) * MEGABYTE;

        for (unsigned i = 0; i < sim->n_fleets; i++)
                bytes += sim->fleets[i].settings[0].active_process_count *
                         (sim->fleets[i].good.base_bytes + PICK(rng, 0, 20, 100) * MEGABYTE);
        return bytes;
}

struct origin origin_of_bytes(const uint8_t *bytes, size_t size)
{
        struct origin origin = {0};
        size_t n = MIN(size, sizeof(origin.seed));

        for (size_t i = 0; i < n; i++)
                origin.seed = origin.seed << 8 | bytes[i];
        origin.bytes = n > 0 ? bytes + n : bytes;
        origin.size = size - n;
        return origin;
}

void sim_open(struct sim *sim, const struct origin *origin)
{
        uint64_t seed = origin->seed;

        *sim = (struct sim){.seed = seed, .rng = rng_fork(seed, 0), .next_pid = 100};
        struct rng *rng = &sim->rng;
        rng->bytes = origin->bytes;
        rng->left = origin->size;
        struct shell *shell = &sim->shell;

        sim->now = sim->begun_at = 1000 * SEC;
        sim->calm_at = sim->now + PICK(rng, 10, 20, 30, 60) * USEC_PER_MIN;
        if (rng_chance(rng, 10))
                sim->calm_at = sim->now + PICK(rng, 6, 24) * USEC_PER_HOUR;
        sim->end_at = sim->calm_at + 4 * USEC_PER_HOUR;
        sim->stepped_usec = (int64_t)(1700000000 * SEC);
        bool is_small = rng_chance(rng, 250);
        sim->service = rng_chance(rng, 500);
        sim->strangers = rng_chance(rng, 300);
        sim->n_fleets = rng_chance(rng, 200) ? 2 : 1;
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                struct fleet_sim *fleet = &sim->fleets[i];

                make_release(rng, &fleet->good);
                make_settings(rng, &fleet->good, &fleet->settings[0]);
                make_settings(rng, &fleet->good, &fleet->settings[1]);
                make_framework(seed, i, fleet);
                fleet->settings[1].launch_hash = rng_chance(rng, 300);
                fleet->settings[1].removed = rng_chance(rng, 100);
                snprintf(fleet->name, sizeof(fleet->name), "%s", i == 0 ? "red" : "blue");
                fleet->settings[0].name = fleet->settings[1].name = fleet->name;
                fleet->link.next_at = USEC_INFINITY;
                shell->fleet_list[i] = &fleet->settings[0];
        }
        sim->total_bytes = is_small ? make_memory(sim) : MEMORY_PLENTY;
        shell->settings = (struct settings){
                .check_interval = PICK(rng, 5, 5, 5, 2, 10) * SEC,
                .shutdown_timeout = PICK(rng, 60, 20, 600) * SEC,
                .fleets = shell->fleet_list,
                .n_fleets = sim->n_fleets,
        };
        shell->kill_in = shell->kill_forking = -1;
        shell->start_at = sim->now;
        make_schedule(sim);
        drains_open(sim);
        scaling_open(sim);
        trial_open(sim);
        interrupt_open(sim);
        deaf_open(sim);
        templates_open(sim);
        clones_open(sim);
        readers_open(sim);
}

void sim_close(struct sim *sim)
{
        sim->shell.adoption = adoption_free(sim->shell.adoption);
        for (size_t i = 0; sim->shell.world && i < sim->shell.world->n_fleets; i++)
                autoscale_forget(sim->shell.world->fleets[i]);
        deaf_forget(sim);
        sim->shell.world = world_free(sim->shell.world);
        plan_free(&sim->shell.pass.plan);
        free(sim->shell.state);
        free(sim->shell.orders);
        free(sim->shell.ledger_memory);
        for (unsigned i = 0; i < sim->n_fleets; i++)
                match_clear(&sim->fleets[i].link.match);
        SIM_FOREACH_PROCESS(sim, process)
                free(process);
        free(sim->processes);
}
