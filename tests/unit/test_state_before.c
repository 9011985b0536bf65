/* SPDX-License-Identifier: MIT */
/* A state file of the first version, as an 0.1.0 (e2e4629) wrote it, is read as what it was, and is continued
 * and written again as the present version. tests/state/1 is of a fleet in its jobs, one scaled, one whose
 * quiet workers finish, one stopped, one whose restart waits for new workers to boot, one whose restart has
 * halted, one in a crash loop; and one with a Redis of its own that is stuck, a worker of which has just been
 * killed and started again. */
#include "continuity/state.h"
#include "frameworks/sidekiq/format.h"
#include "model/fleets.h"
#include "model/generation.h"
#include "model/world.h"
#include "observe/observe.h"
#include "state_file.h"

#define FLEETS_MAX 8

#define BOOT      "f1d23d36-eb7b-42e3-891b-bc7eca962848"
#define PACKED_AT ((usec_t)1817461388)

static struct state *state;

static void setup(void)
{
        state = NULL;
}

static void teardown(void)
{
        state_free(state);
}

static void read_it(const char *boot, usec_t now)
{
        uint8_t bytes[STATE_FILE_MAX];
        size_t size = state_file_read("1", bytes);

        ck_assert_int_eq(state_unpack(bytes, size, boot, now, &state), STATE_READ);
        ck_assert_uint_eq(state->n_fleets, FLEETS_MAX);
}

static const struct state_fleet *saved_fleet(const char *name)
{
        for (size_t i = 0; i < state->n_fleets; i++) {
                if (strcmp(state->fleets[i].name, name) == 0)
                        return &state->fleets[i];
        }
        ck_abort_msg("there is no fleet '%s'", name);
}

struct saved_worker {
        unsigned index;
        pid_t pid;
        uint64_t generation;
        enum worker_state state;
        enum reason reason;
};

static const struct saved {
        const char *name;
        uint64_t generation;
        enum fleet_order order;
        unsigned scale;
        unsigned count; /* active_process_count */
        enum rollout_state rollout;
        unsigned failures;
        unsigned crashes;
        size_t n_workers;
        struct saved_worker workers[4];
} fleets[] = {
        {"default", 1, .count = 3, .n_workers = 3,
         .workers = {{1, 20837, 1, WORKER_ACTIVE, REASON_NONE},
                     {2, 20838, 1, WORKER_ACTIVE, REASON_NONE},
                     {3, 20839, 1, WORKER_ACTIVE, REASON_NONE}}},
        {"scaled", 1, .scale = 3, .count = 2, .n_workers = 3,
         .workers = {{1, 20840, 1, WORKER_ACTIVE, REASON_NONE},
                     {2, 20841, 1, WORKER_ACTIVE, REASON_NONE},
                     {3, 21029, 1, WORKER_ACTIVE, REASON_NONE}}},
        {"held", 1, ORDER_QUIET, .count = 2, .n_workers = 2,
         .workers = {{1, 20850, 1, WORKER_QUIET, REASON_OPERATOR},
                     {2, 20851, 1, WORKER_QUIET, REASON_OPERATOR}}},
        {"stopped", 1, ORDER_STOP, .count = 2},
        {"rolling", 2, .count = 2, .rollout = ROLLOUT_RUNNING, .n_workers = 4,
         .workers = {{1, 20854, 1, WORKER_ACTIVE, REASON_NONE},
                     {2, 20855, 1, WORKER_ACTIVE, REASON_NONE},
                     {3, 22146, 2, WORKER_STARTING, REASON_NONE},
                     {4, 22147, 2, WORKER_STARTING, REASON_NONE}}},
        {"halted", 3, .count = 2, .rollout = ROLLOUT_HALTED, .failures = 3, .crashes = 4, .n_workers = 2,
         .workers = {{3, 21226, 2, WORKER_ACTIVE, REASON_NONE}, {4, 21227, 2, WORKER_ACTIVE, REASON_NONE}}},
        {"failing", 1, .count = 2, .crashes = 2},
        {"away", 1, .count = 2, .n_workers = 2,
         .workers = {{1, 22806, 1, WORKER_STARTING, REASON_NONE}, {2, 20919, 1, WORKER_ACTIVE, REASON_NONE}}},
};

static void assert_worker(const struct saved_worker *expected, const struct state_worker *saved)
{
        const struct worker *worker = &saved->worker;
        char identity[64];

        ck_assert_uint_eq(worker->index, expected->index);
        ck_assert_int_eq(worker->process.pid, expected->pid);
        ck_assert_uint_eq(worker->generation, expected->generation);
        ck_assert_int_eq(worker->state, expected->state);
        ck_assert_int_eq(worker->reason, expected->reason);
        ck_assert(!worker->process.unproven && !worker->process.forked && !worker->process.awaits_go &&
                  !worker->orders.quiet_uncaught && !worker->orders.finishes_job);
        ck_assert_uint_gt(worker->process.start, 0);
        ck_assert_uint_le(worker->spawned_at, PACKED_AT);
        snprintf(identity, sizeof(identity), "worker.example:%d:", worker->process.pid);
        if (worker->state == WORKER_STARTING)
                ck_assert_str_eq(saved->identity, "");
        else
                ck_assert_int_eq(strncmp(saved->identity, identity, strlen(identity)), 0);
}

static void assert_fleet(const struct saved *expected)
{
        const struct state_fleet *saved = saved_fleet(expected->name);

        ck_assert_uint_eq(saved->generation, expected->generation);
        ck_assert_int_eq(saved->order, expected->order);
        ck_assert(!saved->force);
        ck_assert_uint_eq(saved->scale, expected->scale);
        ck_assert_uint_eq(saved->scale_for, expected->count);
        ck_assert_uint_eq(saved->scaled, 0);
        ck_assert_uint_eq(saved->framework, sidekiq_traits.id);
        ck_assert_int_eq(saved->rollout.state, expected->rollout);
        ck_assert_uint_eq(saved->rollout.failures, expected->failures);
        ck_assert_uint_eq(saved->crash.count, expected->crashes);
        ck_assert_uint_eq(saved->heartbeat, HEARTBEAT_REDIS);
        ck_assert_int_eq(saved->templates[0].state, TEMPLATE_NONE);
        ck_assert_uint_eq(saved->n_workers, expected->n_workers);
        for (size_t i = 0; i < saved->n_workers; i++)
                assert_worker(&expected->workers[i], &saved->workers[i]);
}

TEST_LOOP(each_fleet_is_as_it_was, ELEMENTSOF(fleets))
{
        read_it(BOOT, PACKED_AT + USEC_PER_SEC);
        assert_fleet(&fleets[_i]);
}

static void assert_texts_and_dead(void)
{
        const struct state_fleet *halted = saved_fleet("halted"), *failing = saved_fleet("failing");

        /* The sentences of the first version quote log tails. */
        ck_assert(quoted_contains(&halted->rollout.quoted, "3 new workers in a row failed; the last: "));
        ck_assert(quoted_contains(&failing->crash_quoted, "exited with status 1 before its first beat"));
        ck_assert_ptr_null(strstr(halted->rollout.error, "failed"));
        ck_assert_ptr_null(strstr(failing->crash_last, "exited"));
        ck_assert_uint_gt(failing->crash.next_at, PACKED_AT);
        ck_assert_str_eq(saved_fleet("default")->redis_url, "");
        ck_assert_ptr_nonnull(strstr(saved_fleet("away")->redis_url, "/other.sock"));

        const struct state_dead *dead = state->dead;

        ck_assert_ptr_nonnull(dead);
        ck_assert_str_eq(dead->fleet, "away");
        ck_assert_int_eq(dead->worker.worker.process.pid, 20911);
        ck_assert_uint_eq(dead->worker.worker.heartbeat.busy, 2);
        ck_assert_str_eq(dead->worker.identity, "worker.example:20911:c622ac5b9c51");
        ck_assert(dead->exit.known && dead->exit.by_signal);
        ck_assert_int_eq(dead->exit.status, 9);
        ck_assert_ptr_null(dead->next);
}

TEST(what_was_reported_and_who_is_dead_is_kept)
{
        read_it(BOOT, PACKED_AT);
        assert_texts_and_dead();
}

TEST(on_another_boot_the_orders_are_left)
{
        read_it("another", 5 * USEC_PER_SEC);
        for (size_t i = 0; i < state->n_fleets; i++)
                ck_assert_uint_eq(state->fleets[i].n_workers, 0);
        ck_assert_ptr_null(state->dead);
        for (size_t i = 0; i < ELEMENTSOF(fleets); i++) {
                const struct state_fleet *saved = saved_fleet(fleets[i].name);

                ck_assert_uint_eq(saved->scale, fleets[i].scale);
                ck_assert_int_eq(saved->order, fleets[i].order);
                ck_assert_uint_eq(saved->generation, fleets[i].generation);
        }
}

static const char *identity_of(const struct worker *worker, void *userdata)
{
        const struct state *from = userdata;

        for (size_t i = 0; i < from->n_fleets; i++) {
                for (size_t j = 0; j < from->fleets[i].n_workers; j++) {
                        if (from->fleets[i].workers[j].worker.process.pid == worker->process.pid)
                                return from->fleets[i].workers[j].identity;
                }
        }
        return NULL;
}

/* Settings with which nothing that is saved lapses. */
static struct fleet_settings settings_of(const struct state_fleet *saved)
{
        return (struct fleet_settings){
                .name = saved->name,
                .traits = &sidekiq_traits,
                .launch_hash = saved->launch_hash,
                .redis_url = saved->redis_url[0] != '\0' ? saved->redis_url : NULL,
                .active_process_count = saved->scale_for,
        };
}

static void go_on(struct fleet *fleet, const struct state_fleet *saved, usec_t now)
{
        state_continue_fleet(fleet, saved, now);
        for (size_t i = 0; i < saved->n_workers; i++) {
                const struct worker *known = &saved->workers[i].worker;

                ck_assert_ptr_nonnull(observe_adopted(fleet, known, known->process.start,
                                                      known->process.heartbeat_start, now));
        }
}

TEST(a_world_that_goes_on_from_it_saves_the_same_in_this_version)
{
        struct fleet_settings each[FLEETS_MAX], *list[FLEETS_MAX];
        struct settings settings = {.fleets = list, .n_fleets = FLEETS_MAX};
        struct world *world;
        uint8_t *again;
        size_t size;

        read_it(BOOT, PACKED_AT);
        for (size_t i = 0; i < state->n_fleets; i++) {
                each[i] = settings_of(&state->fleets[i]);
                list[i] = &each[i];
        }
        ck_assert_int_eq(world_new(&settings, 1, &world), 0);
        for (size_t i = 0; i < state->n_fleets; i++)
                go_on(world_fleet(world, state->fleets[i].name), &state->fleets[i], PACKED_AT);
        const struct state_source source = {.world = world,
                                            .dead = state->dead,
                                            .boot_id = BOOT,
                                            .identity = identity_of,
                                            .userdata = state,
                                            .now = PACKED_AT};
        ck_assert_int_eq(state_pack(&source, &again, &size), 0);
        ck_assert_uint_eq(again[8], STATE_FILE_VERSION);
        world_free(world);
        state = state_free(state);
        ck_assert_int_eq(state_unpack(again, size, BOOT, PACKED_AT, &state), STATE_READ);
        for (size_t i = 0; i < ELEMENTSOF(fleets); i++)
                assert_fleet(&fleets[i]);
        assert_texts_and_dead();
        free(again);
}

/* A restart was done, and a reload began a generation after it: the file has only that generation. */
TEST(what_a_reload_has_outdated_stays)
{
        struct world *world;

        read_it(BOOT, PACKED_AT);
        struct state_fleet *saved = &state->fleets[0];
        struct fleet_settings each = settings_of(saved), *list[] = {&each};
        const struct settings settings = {.fleets = list, .n_fleets = 1};
        ck_assert_uint_gt(saved->n_workers, 0);
        saved->generation = 2;
        saved->rollout.state = ROLLOUT_DONE;
        ck_assert_int_eq(world_new(&settings, 1, &world), 0);
        go_on(world->fleets[0], saved, PACKED_AT);
        FLEET_FOREACH_WORKER(world->fleets[0], worker)
                ck_assert(!generation_is_replaced(worker));
        world_free(world);
}

TEST_MAIN("state before", .each = {setup, teardown})
