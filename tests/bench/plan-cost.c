/* SPDX-License-Identifier: MIT */
/* Measures the cost of the core alone, without a process or a Redis.
 *
 * plan-cost WORKERS ROUNDS: prints the nanoseconds of CPU time of each plan, in a fleet of WORKERS active
 * workers whose heartbeats and memory were observed before. Callgrind counts the instructions of
 * bench_round(). */
#include "decide/plan.h"
#include "frameworks/sidekiq/format.h"
#include "model/fleets.h"
#include "model/world.h"
#include "observe/observe.h"
#include <stdio.h>
#include <time.h>

static usec_t now = 1000 * USEC_PER_SEC;
static uint64_t heartbeat_number;

static struct fleet_settings fleet_settings = {
        .name = (char *)"bench",
        .traits = &sidekiq_traits,
        .restart_surge = {.value = 100, .percent = true},
        .ready_after = 10 * USEC_PER_SEC,
        .boot_timeout = 120 * USEC_PER_SEC,
        .rollout_timeout = 10 * USEC_PER_MIN,
        .stop_timeout = 60 * USEC_PER_SEC,
        .memory_threshold = (uint64_t)8 << 30,
};
static struct fleet_settings *fleet_list[] = {&fleet_settings};
static struct settings settings = {.check_interval = 5 * USEC_PER_SEC,
                                   .shutdown_timeout = 60 * USEC_PER_SEC,
                                   .fleets = fleet_list,
                                   .n_fleets = 1};

static struct field field(const char *text)
{
        return (struct field){.text = text, .len = strlen(text)};
}

static void observe_round(struct fleet *fleet)
{
        char text[64];

        snprintf(text, sizeof(text), "1795238801.%06u", (unsigned)(heartbeat_number++ % 1000000));
        const struct field fields[_SIDEKIQ_FIELD_MAX] = {
                [SIDEKIQ_BUSY] = field("1"),
                [SIDEKIQ_HEARTBEAT] = field(text),
                [SIDEKIQ_QUIET] = field("false"),
                [SIDEKIQ_RSS] = field("204800"),
        };
        for (size_t i = 0; i < fleet->n_workers; i++) {
                struct worker *worker = fleet->workers[i];
                struct heartbeat heartbeat;

                if (!sidekiq_heartbeat_decode(fields, &heartbeat))
                        return;
                observe_memory(worker, (uint64_t)200 << 20, now);
                observe_heartbeat(worker, &heartbeat, now);
        }
}

static long long cpu_nsec(void)
{
        struct timespec cpu;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
        return cpu.tv_sec * 1000000000LL + cpu.tv_nsec;
}

/* Returns the nanoseconds of the plan alone. Not static, so that callgrind finds it by name. */
long long bench_round(struct world *world, struct plan *plan);
__attribute__((noinline)) long long bench_round(struct world *world, struct plan *plan)
{
        now += settings.check_interval;
        (void)observe_clocks(world, now, now, now);
        observe_round(world->fleets[0]);
        observe_time(world, now);
        long long before = cpu_nsec();
        if (plan_make(plan, world, now) < 0 || plan->n_actions > 0)
                return -1;
        long long took = cpu_nsec() - before;
        world_events_clear(world);
        return took;
}

static int fill(struct fleet *fleet, unsigned count)
{
        for (unsigned i = 1; i <= count; i++) {
                struct worker *worker = observe_started(fleet, i, REASON_NONE, (pid_t)(100 + i), i, now);
                if (!worker)
                        return -1;
                observe_heartbeat_process(worker, worker->process.pid, worker->process.start, now);
                world_events_clear(fleet->world);
        }
        return 0;
}

int main(int argc, char **argv)
{
        struct world *world;
        struct plan plan = {0};
        int status = EXIT_SUCCESS;

        if (argc != 3) {
                fprintf(stderr, "usage: %s WORKERS ROUNDS\n", argv[0]);
                return 2;
        }
        unsigned count = (unsigned)strtoul(argv[1], NULL, 10);
        long rounds = strtol(argv[2], NULL, 10);

        fleet_settings.active_process_count = count;
        if (world_new(&settings, 42, &world) < 0)
                return EXIT_FAILURE;
        observe_redis(world->fleets[0], true, now);
        observe_clocks(world, now, now, now);
        if (fill(world->fleets[0], count) < 0) {
                status = EXIT_FAILURE;
        } else {
                observe_round(world->fleets[0]);
                world_events_clear(world);
                for (long i = 0; i < rounds && status == EXIT_SUCCESS; i++) {
                        long long nsec = bench_round(world, &plan);
                        if (nsec < 0)
                                status = EXIT_FAILURE;
                        else
                                printf("%lld\n", nsec);
                }
        }
        plan_free(&plan);
        world_free(world);
        return status;
}
