/* SPDX-License-Identifier: MIT */
/* Random lives of a fleet, from fixed seeds: the simulated world checks P1, P2, P3, P5, P7 and P9 at each
 * action. Once all faults are over, the fleet must become healthy. */
/* promises: P1 P2 P3 P5 P7 P9 */
#include "decide/command.h"
#include "model/names.h"
#include "model/world.h"
#include "observe/observe.h"
#include "settings/settings.h"
#include "world.h"

#define SEEDS 200
#define STEPS 250

static uint64_t random_state;

static unsigned pick(unsigned n)
{
        random_state = random_state * 6364136223846793005U + 1442695040888963407U;
        return (unsigned)(random_state >> 33) % n;
}

static struct worker *any_worker(struct test_world *t)
{
        return t->fleet->n_workers == 0 ? NULL : t->fleet->workers[pick((unsigned)t->fleet->n_workers)];
}

/* Jobs come to workers that take them, and end. */
static void work(struct test_world *t)
{
        for (size_t i = 0; i < t->fleet->n_workers; i++) {
                struct process *process = test_process(t->fleet->workers[i]);

                if (process->sent_usec == 0 || process->stopping)
                        continue;
                if (process->busy > 0 && pick(3) == 0)
                        process->busy--;
                else if (!process->quiet && process->busy < 5 && pick(2) == 0)
                        process->busy++;
        }
}

static void befall_worker(struct test_world *t, struct worker *worker)
{
        struct process *process = test_process(worker);

        switch (pick(8)) {
        case 0:
                process->die_usec = 0;
                break;
        case 1:
                process->hung = true;
                break;
        case 2:
                process->hung = false;
                break;
        case 3:
                process->memory_bytes = (uint64_t)(100 + pick(1000)) << 20;
                break;
        case 4:
                process->deaf = !process->deaf;
                break;
        case 5:
                process->quiet = process->quiet || process->sent_usec > 0;
                break;
        case 6:
                process->native_thread = true;
                break;
        default:
                command_quiet_worker(worker, NULL, t->now);
                break;
        }
}

static void order(struct test_world *t)
{
        switch (pick(9)) {
        case 0:
                command_quiet_fleet(t->fleet, NULL, t->now);
                break;
        case 1:
                command_stop(t->fleet, pick(4) == 0, NULL, t->now);
                break;
        case 2:
        case 3:
                command_start(t->fleet, NULL, t->now);
                break;
        case 4:
                command_abort(t->fleet, NULL, t->now);
                break;
        case 5:
                command_scale(t->fleet, 1 + pick(6), NULL, t->now);
                break;
        default:
                command_restart(t->fleet, NULL, t->now);
                break;
        }
}

static void befall_world(struct test_world *t)
{
        switch (pick(10)) {
        case 0:
        case 1:
                test_redis(t, !t->redis_up);
                break;
        case 2:
                t->suspended_usec += USEC_PER_MIN;
                break;
        case 3:
                t->stepped_usec += (int64_t)pick(7200) * (int64_t)USEC_PER_SEC - 3600 * (int64_t)USEC_PER_SEC;
                break;
        case 4:
                test_tick(t, 20 + pick(100));
                break;
        case 5:
                t->newborn.boot_usec = pick(3) == 0 ? USEC_INFINITY : pick(40) * USEC_PER_SEC;
                break;
        case 6:
                t->newborn.die_usec = pick(2) == 0 ? USEC_INFINITY : pick(60) * USEC_PER_SEC;
                break;
        case 7:
                observe_available_memory(t->world, (uint64_t)(100 + pick(2000)) << 20);
                break;
        case 8:
                t->quiet_error = pick(2) == 0 ? EPERM : 0;
                break;
        default:
                t->start_error = pick(4) == 0 ? ENOMEM : 0;
                break;
        }
}

static void live(struct test_world *t)
{
        for (unsigned i = 0; i < STEPS; i++) {
                struct worker *worker = any_worker(t);

                work(t);
                if (worker && pick(6) == 0)
                        befall_worker(t, worker);
                if (pick(12) == 0)
                        befall_world(t);
                if (pick(20) == 0)
                        order(t);
                test_tick(t, 0.25 * (1 + pick(16)));
                world_events_clear(t->world);
        }
}

/* All faults are over: the fleet must come to its count by itself. */
static void recover(struct test_world *t)
{
        test_redis(t, true);
        t->newborn = (struct process){
                .boot_usec = USEC_PER_SEC, .die_usec = USEC_INFINITY, .memory_bytes = (uint64_t)200 << 20};
        t->quiet_error = 0;
        t->start_error = 0;
        observe_available_memory(t->world, 0);
        for (size_t i = 0; i < t->fleet->n_workers; i++) {
                struct process *process = test_process(t->fleet->workers[i]);

                process->hung = process->deaf = false;
                process->busy = 0;
        }
        t->fleet_settings.boot_timeout = 30 * USEC_PER_SEC;
        command_start(t->fleet, NULL, t->now);
        command_restart(t->fleet, NULL, t->now);
        for (unsigned i = 0; i < 400; i++) {
                struct fleet_counts counts = test_counts(t);
                unsigned target = fleet_target(t->fleet);

                if (counts.live == target && counts.ready == target &&
                    t->fleet->rollout.state == ROLLOUT_DONE)
                        return;
                test_tick(t, 2);
                world_events_clear(t->world);
        }
        struct fleet_counts counts = test_counts(t);
        ck_abort_msg("does not recover: target %u, live %u, ready %u, quiet %u, rollout %s: %s",
                     fleet_target(t->fleet), counts.live, counts.ready, counts.quiet,
                     rollout_state_name(t->fleet->rollout.state), test_fleet_waits_for(t));
}

TEST_LOOP(keeps_its_promises_whatever_happens, SEEDS)
{
        struct test_world t;

        random_state = (uint64_t)_i * 2654435761U + 1;
        test_world_open(&t, 1 + pick(4));
        t.fleet_settings.max_processes = 8;
        t.fleet_settings.memory_threshold = (uint64_t)500 << 20;
        t.fleet_settings.memory_limit = pick(2) == 0 ? (uint64_t)900 << 20 : 0;
        t.fleet_settings.max_age = pick(4) == 0 ? 5 * USEC_PER_MIN : 0;
        t.fleet_settings.restart_surge = (struct share){.value = pick(3) * 50, .percent = true};
        live(&t);
        recover(&t);
        test_world_close(&t);
}

TEST_MAIN("promises")
