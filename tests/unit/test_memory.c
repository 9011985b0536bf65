/* SPDX-License-Identifier: MIT */
/* Memory that is spoken for: no start takes what another one still grows to. */
/* promises: P1 P6 */
#include "decide/command.h"
#include "model/fleets.h"
#include "model/memory.h"
#include "model/preload.h"
#include "model/world.h"
#include "observe/observe.h"
#include "world.h"

#define MB ((uint64_t)1 << 20)

TEST_WORLD(4)
{
}

static void available(unsigned megabytes)
{
        observe_available_memory(t.world, megabytes * MB);
}

/* Four workers of 149M, known to be of that size, grown, and ready. */
static void settle(void)
{
        t.newborn.memory_bytes = 149 * MB;
        test_settle(&t);
        test_after(&t, 70, memory_expected_bytes(t.fleet), 149 * MB);
        ck_assert_uint_eq(memory_reserved_bytes(t.world, t.now), 0);
}

TEST(the_median_worker_bounds_an_extra_one)
{
        static const unsigned megabytes[] = {100, 400, 900};

        for (size_t i = 0; i < ELEMENTSOF(megabytes); i++)
                observe_memory(test_spawn_ready(&t), megabytes[i] * MB, t.now + 61 * USEC_PER_SEC);
        t.now += 61 * USEC_PER_SEC;
        ck_assert_uint_eq(memory_expected_bytes(t.fleet), 400 * MB);
        ck_assert(!memory_lacks(t.fleet, t.now));
        available(500);
        ck_assert(!memory_lacks(t.fleet, t.now));
        observe_available_memory(t.world, 500 * MB - 1);
        ck_assert(memory_lacks(t.fleet, t.now));
}

/* Limit 900M, 4 workers of 149M, 337M free: 4 were started at once, and the OOM killer took two old ones. */
TEST(a_restart_starts_as_many_as_there_is_memory_for)
{
        settle();
        available(337);
        command_restart(t.fleet, NULL, t.now);
        ck_assert_uint_eq(test_plans(&t, ACTION_START, NULL), 2);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_MEMORY);
        t.newborn.memory_bytes = 20 * MB;
        t.newborn.boot_usec = 60 * USEC_PER_SEC;
        test_execute(&t);
        /* What they have not taken yet is spoken for, at each reading. */
        for (unsigned i = 0; i < 20; i++) {
                available(337 - 40);
                test_after(&t, 1, test_counts(&t).live, 6);
        }
        ck_assert_uint_eq(memory_reserved_bytes(t.world, t.now), 2 * 129 * MB);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_MEMORY);
        ck_assert_uint_eq(test_events(&t, EVENT_PLACES_HELD), 1);
        /* It proves to be there: one more. */
        available(258 + 187);
        test_after(&t, 1, test_counts(&t).live, 7);
        available(4096);
        test_after(&t, 1, test_counts(&t).live, 8);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_NONE);
}

TEST(a_restart_that_waits_for_memory_does_not_halt)
{
        settle();
        available(100);
        test_restart_to(&t, 1200, ROLLOUT_RUNNING);
        ck_assert_uint_eq(test_counts(&t).live, 4);
        available(4096);
        test_after(&t, 300, t.fleet->rollout.state, ROLLOUT_DONE);
}

TEST(one_below_the_count_is_started_whatever_memory_there_is)
{
        settle();
        available(10);
        test_exit(&t, test_worker(&t, 2), 1);
        test_after(&t, 1, test_counts(&t).live, 4);
        ck_assert_uint_eq(test_counts(&t).starting, 1);
}

TEST(one_beside_workers_that_drain_is_an_extra_one)
{
        settle();
        available(10);
        for (unsigned i = 1; i <= 4; i++)
                test_process(test_worker(&t, i))->busy = 1;
        test_run(&t, 6);
        command_quiet_worker(test_worker(&t, 1), NULL, t.now);
        test_after(&t, 60, test_counts(&t).live, 4);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_MEMORY);
        /* But never is nobody left. */
        for (unsigned i = 2; i <= 4; i++)
                command_quiet_worker(test_worker(&t, i), NULL, t.now);
        test_after(&t, 60, test_counts(&t).quiet, 4);
        ck_assert_uint_eq(test_counts(&t).active, 1);
        available(4096);
        test_after(&t, 60, test_counts(&t).active, 4);
}

TEST(what_is_spoken_for_is_so_until_it_has_been_seen_to_have_grown)
{
        settle();
        struct worker *worker = test_spawn(&t);
        ck_assert_uint_eq(memory_reserved_bytes(t.world, t.now), 149 * MB);
        observe_memory(worker, 30 * MB, t.now + 1);
        ck_assert_uint_eq(memory_reserved_bytes(t.world, t.now), 119 * MB);
        test_heartbeat(&t, worker, 100, 0, false);
        observe_memory(worker, 100 * MB, worker->active_at + 60 * USEC_PER_SEC);
        ck_assert_uint_eq(memory_reserved_bytes(t.world, t.now), 49 * MB);
        observe_memory(worker, 100 * MB, worker->active_at + 60 * USEC_PER_SEC + 1);
        ck_assert_uint_eq(memory_reserved_bytes(t.world, t.now), 0);

        /* One that never comes up: as long as a boot may take. */
        struct worker *other = test_spawn(&t);
        t.now += t.fleet_settings.boot_timeout;
        ck_assert_uint_eq(memory_reserved_bytes(t.world, t.now), 149 * MB);
        ck_assert_uint_eq(memory_reserved_bytes(t.world, t.now + 1), 0);
        observe_memory(other, 200 * MB, t.now);
        ck_assert_uint_eq(memory_reserved_bytes(t.world, t.now), 0);
}

/* Its wrapper started it again and again, while nobody could tell that it did not come up: what it grew to
 * was given to another each time. */
TEST(what_may_come_up_without_redis_is_spoken_for)
{
        settle();
        struct worker *worker = test_spawn(&t);
        observe_redis(t.fleet, false, t.now);
        t.now += 2 * t.fleet_settings.boot_timeout;
        observe_memory(worker, 149 * MB, t.now);
        ck_assert_uint_eq(memory_reserved_bytes(t.world, t.now), 0);
        observe_memory(worker, 1 * MB, t.now);
        ck_assert_uint_eq(memory_reserved_bytes(t.world, t.now), 148 * MB);
        observe_redis(t.fleet, true, t.now);
        t.now += t.fleet_settings.boot_timeout;
        observe_memory(worker, 1 * MB, t.now);
        ck_assert_uint_eq(memory_reserved_bytes(t.world, t.now), 148 * MB);
        observe_memory(worker, 1 * MB, t.now + 1);
        ck_assert_uint_eq(memory_reserved_bytes(t.world, t.now + 1), 0);
}

TEST(the_size_of_one_that_boots_is_no_size)
{
        settle();
        struct worker *worker = test_spawn(&t);
        observe_memory(worker, 30 * MB, t.now);
        test_heartbeat(&t, worker, 100, 0, false);
        for (unsigned i = 1; i <= 3; i++)
                test_exit(&t, test_worker(&t, i), 1);
        fleet_reap(t.fleet, test_process_free);
        ck_assert_uint_eq(memory_expected_bytes(t.fleet), 149 * MB);
        /* Where nobody has been seen at work, the largest is the best guess. */
        test_exit(&t, test_worker(&t, 4), 1);
        fleet_reap(t.fleet, test_process_free);
        observe_memory(test_spawn(&t), 40 * MB, t.now);
        ck_assert_uint_eq(memory_expected_bytes(t.fleet), 40 * MB);
}

/* Four fleets of one worker each, restarted at once: three of four jobs were lost. */
TEST(the_fleets_of_a_host_share_its_memory)
{
        static char names[4][3] = {"f0", "f1", "f2", "f3"};
        struct fleet_settings fleets[4], *list[4];
        struct settings settings = t.settings;
        struct world *world;
        struct plan plan = {0};
        usec_t now = t.now + 2 * USEC_PER_MIN;

        for (size_t i = 0; i < 4; i++) {
                fleets[i] = t.fleet_settings;
                fleets[i].name = names[i];
                fleets[i].active_process_count = 1;
                fleets[i].restart_surge = (struct share){.value = 1};
                list[i] = &fleets[i];
        }
        settings.fleets = list;
        settings.n_fleets = 4;
        ck_assert_int_eq(world_new(&settings, 1, &world), 0);
        for (unsigned i = 0; i < 4; i++) {
                const struct heartbeat heartbeat = {.sent_usec = 1, .concurrency = 5};
                struct fleet *fleet = world->fleets[i];

                observe_redis(fleet, true, t.now);
                struct worker *worker = observe_started(fleet, 1, REASON_NONE, (pid_t)(100 + i), 1, t.now);
                ck_assert_ptr_nonnull(worker);
                observe_heartbeat_process(worker, worker->process.pid, 1, t.now);
                observe_heartbeat(worker, &heartbeat, t.now);
                observe_memory(worker, 149 * MB, now);
                command_restart(fleet, NULL, now);
        }
        observe_available_memory(world, 337 * MB);
        ck_assert_int_eq(plan_make(&plan, world, now), 0);
        ck_assert_uint_eq(plan.n_actions, 2);
        ck_assert_ptr_eq(plan.actions[0].fleet, world->fleets[0]);
        ck_assert_ptr_eq(plan.actions[1].fleet, world->fleets[1]);
        ck_assert_int_eq(world->fleets[3]->waits_for, WAIT_MEMORY);
        for (size_t i = 0; i < 2; i++)
                ck_assert_ptr_nonnull(
                        observe_started(plan.actions[i].fleet, 2, REASON_RESTART, (pid_t)(200 + i), 1, now));
        ck_assert_int_eq(plan_make(&plan, world, now), 0);
        ck_assert_uint_eq(plan.n_actions, 0);
        plan_free(&plan);
        world_free(world);
}

/* What it shares with its template and its siblings is there once. */
TEST(of_one_that_was_forked_its_own_memory_counts)
{
        settle();
        for (unsigned i = 1; i <= 4; i++)
                observe_own_memory(test_worker(&t, i), (10 + i) * MB);
        ck_assert_uint_eq(memory_expected_bytes(t.fleet), 12 * MB);
        observe_memory(test_spawn(&t), 149 * MB, t.now);
        ck_assert_uint_eq(memory_reserved_bytes(t.world, t.now), 0);
        observe_own_memory(test_worker(&t, 5), 2 * MB);
        ck_assert_uint_eq(memory_reserved_bytes(t.world, t.now), 10 * MB);
        available(25);
        ck_assert(!memory_lacks(t.fleet, t.now));
        available(24);
        ck_assert(memory_lacks(t.fleet, t.now));
}

/* The same of templates, of 150M; workers are taken to share nothing. */
static void settle_preloaded(void)
{
        test_preload(&t);
        settle();
        ck_assert_uint_eq(fleet_template_bytes(t.fleet), 150 * MB);
}

TEST(what_a_template_grows_to_is_spoken_for_while_it_loads)
{
        test_preload(&t);
        test_after(&t, 1, memory_reserved_bytes(t.world, t.now), 0);
        settle();
        /* Of the next, in the same place, it is known. */
        t.newborn_template.memory_bytes = 30 * MB;
        test_template_exit(&t, fleet_template(t.fleet));
        ck_assert_uint_eq(fleet_template_bytes(t.fleet), 150 * MB);
        test_tick(&t, 0.1);
        ck_assert_int_eq(fleet_template(t.fleet)->state, TEMPLATE_LOADING);
        ck_assert_uint_eq(memory_reserved_bytes(t.world, t.now), 150 * MB);
        test_tick(&t, 0.1);
        ck_assert_uint_eq(memory_reserved_bytes(t.world, t.now), 120 * MB);
        test_load(&t);
        ck_assert_uint_eq(memory_reserved_bytes(t.world, t.now), 0);
        /* It is as large as it was seen to be at last. */
        test_after(&t, 1, fleet_template_bytes(t.fleet), 30 * MB);
}

TEST(a_template_of_unknown_size_is_taken_to_be_as_large_as_a_worker)
{
        settle();
        test_preload(&t);
        ck_assert_uint_eq(fleet_template_bytes(t.fleet), 149 * MB);
        available(180);
        ck_assert_uint_eq(test_plans(&t, ACTION_LOAD, NULL), 0);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_MEMORY);
        available(200);
        ck_assert_uint_eq(test_plans(&t, ACTION_LOAD, NULL), 1);
}

/* Its workers share nearly all, so each of them would fit. */
TEST(a_restart_that_waits_for_memory_to_load_does_not_halt)
{
        settle_preloaded();
        for (unsigned i = 1; i <= 4; i++)
                observe_own_memory(test_worker(&t, i), 5 * MB);
        available(100);
        ck_assert(!memory_lacks(t.fleet, t.now));
        test_restart_to(&t, 1200, ROLLOUT_RUNNING);
        ck_assert_uint_eq(t.loads, 1);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_MEMORY);
        ck_assert(fleet_wants_template(t.fleet));
        available(200);
        test_after(&t, 120, t.fleet->rollout.state, ROLLOUT_DONE);
}

TEST(a_template_that_a_missing_worker_waits_for_is_loaded_whatever_memory_there_is)
{
        settle_preloaded();
        available(10);
        test_template_exit(&t, fleet_template(t.fleet));
        ck_assert_uint_eq(test_plans(&t, ACTION_LOAD, NULL), 0);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_MEMORY);
        test_exit(&t, test_worker(&t, 2), 1);
        ck_assert_uint_eq(test_plans(&t, ACTION_LOAD, NULL), 1);
}

TEST(templates_of_the_fleets_of_a_host_share_its_memory)
{
        static char names[3][3] = {"f0", "f1", "f2"};
        struct fleet_settings fleets[3], *list[3];
        struct settings settings = t.settings;
        struct world *world;
        struct plan plan = {0};

        for (size_t i = 0; i < 3; i++) {
                fleets[i] = t.fleet_settings;
                fleets[i].name = names[i];
                fleets[i].active_process_count = 1;
                fleets[i].preload = 1;
                list[i] = &fleets[i];
        }
        settings.fleets = list;
        settings.n_fleets = 3;
        ck_assert_int_eq(world_new(&settings, 1, &world), 0);
        for (unsigned i = 0; i < 3; i++) {
                struct fleet *fleet = world->fleets[i];

                observe_redis(fleet, true, t.now);
                ck_assert_ptr_nonnull(
                        observe_started(fleet, 1, REASON_NONE, (pid_t)(100 + i), 1, t.now - USEC_PER_HOUR));
                observe_memory(fleet->workers[0], 100 * MB, t.now);
        }
        observe_available_memory(world, 100 * MB + 125 * MB);
        ck_assert_int_eq(plan_make(&plan, world, t.now), 0);
        ck_assert_uint_eq(plan.n_actions, 2);
        ck_assert_ptr_eq(plan.actions[0].fleet, world->fleets[0]);
        ck_assert_ptr_eq(plan.actions[1].fleet, world->fleets[1]);
        ck_assert_int_eq(world->fleets[2]->waits_for, WAIT_MEMORY);
        plan_free(&plan);
        world_free(world);
}

TEST_MAIN("memory", .each = {setup, teardown})
