/* SPDX-License-Identifier: MIT */
/* A state file that an 0.1.0 wrote of a rich world is read as what it was, and would be written again as it
 * is.
 *
 * The world: a fleet in its jobs, one scaled, one whose quiet workers finish, one stopped, one whose restart
 * waits for new workers to boot, one whose restart has halted, one in a crash loop; and one with a Redis of
 * its own that is stuck, a worker of which has just been killed and started again. */
#include "frameworks/sidekiq/format.h"
#include "model/observe.h"
#include "model/state.h"
#include "unit.h"

#define BOOT      "f1d23d36-eb7b-42e3-891b-bc7eca962848"
#define PACKED_AT ((usec_t)1817461388)

static uint8_t bytes[16 * 1024];
static size_t size;
static struct state *state;

static void setup(void)
{
        const char *source = getenv("srcdir");
        char path[512];

        snprintf(path, sizeof(path), "%s/tests/golden/state-0.1.0", source ? source : ".");
        FILE *file = fopen(path, "re");
        ck_assert_msg(file, "%s: %s", path, strerror(errno));
        size = fread(bytes, 1, sizeof(bytes), file);
        ck_assert_uint_lt(size, sizeof(bytes));
        fclose(file);
        state = NULL;
}

static void teardown(void)
{
        state_free(state);
}

static void read_it(const char *boot, usec_t now)
{
        ck_assert_int_eq(state_unpack(bytes, size, boot, now, &state), STATE_READ);
        ck_assert_uint_eq(state->n_fleets, 8);
}

static const struct state_fleet *saved_fleet(const char *name)
{
        for (size_t i = 0; i < state->n_fleets; i++) {
                if (strcmp(state->fleets[i].name, name) == 0)
                        return &state->fleets[i];
        }
        ck_abort_msg("there is no fleet '%s'", name);
}

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
        struct {
                unsigned index;
                pid_t pid;
                uint64_t generation;
                enum worker_state state;
                enum reason reason;
        } workers[4];
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

START_TEST(each_fleet_is_as_it_was)
{
        const struct saved *expected = &fleets[_i];

        read_it(BOOT, PACKED_AT + USEC_PER_SEC);
        const struct state_fleet *saved = saved_fleet(expected->name);

        ck_assert_uint_eq(saved->generation, expected->generation);
        ck_assert_int_eq(saved->order, expected->order);
        ck_assert(!saved->force);
        ck_assert_uint_eq(saved->scale, expected->scale);
        ck_assert_uint_eq(saved->scale_for, expected->count);
        ck_assert_uint_eq(saved->framework, sidekiq_traits.id);
        ck_assert_int_eq(saved->rollout.state, expected->rollout);
        ck_assert_uint_eq(saved->rollout.failures, expected->failures);
        ck_assert_uint_eq(saved->crash.count, expected->crashes);
        ck_assert_uint_eq(saved->n_workers, expected->n_workers);
        for (size_t i = 0; i < saved->n_workers; i++) {
                const struct worker *worker = &saved->workers[i].worker;
                char identity[64];

                ck_assert_uint_eq(worker->index, expected->workers[i].index);
                ck_assert_int_eq(worker->pid, expected->workers[i].pid);
                ck_assert_uint_eq(worker->generation, expected->workers[i].generation);
                ck_assert_int_eq(worker->state, expected->workers[i].state);
                ck_assert_int_eq(worker->reason, expected->workers[i].reason);
                ck_assert_uint_gt(worker->pid_start, 0);
                ck_assert_uint_lt(worker->spawned_at, PACKED_AT);
                /* Who has not beaten yet has no name there. */
                snprintf(identity, sizeof(identity), "worker.example:%d:", worker->pid);
                if (worker->state == WORKER_STARTING)
                        ck_assert_str_eq(saved->workers[i].identity, "");
                else
                        ck_assert_int_eq(strncmp(saved->workers[i].identity, identity, strlen(identity)), 0);
        }
}
END_TEST

START_TEST(what_was_told_and_who_is_dead_is_kept)
{
        read_it(BOOT, PACKED_AT);
        const struct state_fleet *halted = saved_fleet("halted"), *failing = saved_fleet("failing");

        ck_assert_ptr_nonnull(strstr(halted->rollout.error, "3 new workers in a row failed; the last: "));
        ck_assert_ptr_nonnull(strstr(failing->crash_last, "exited with status 1 before its first beat"));
        ck_assert_uint_gt(failing->crash.next_at, PACKED_AT);
        ck_assert_str_eq(saved_fleet("default")->redis_url, "");
        ck_assert_ptr_nonnull(strstr(saved_fleet("away")->redis_url, "/other.sock"));

        const struct state_dead *dead = state->dead;

        ck_assert_ptr_nonnull(dead);
        ck_assert_str_eq(dead->fleet, "away");
        ck_assert_int_eq(dead->worker.worker.pid, 20911);
        ck_assert_uint_eq(dead->worker.worker.busy, 2);
        ck_assert_str_eq(dead->worker.identity, "worker.example:20911:c622ac5b9c51");
        ck_assert(dead->exit.known && dead->exit.by_signal);
        ck_assert_int_eq(dead->exit.status, 9);
        ck_assert_ptr_null(dead->next);
}
END_TEST

START_TEST(on_another_boot_the_orders_are_left)
{
        read_it("another", 5 * USEC_PER_SEC);
        for (size_t i = 0; i < state->n_fleets; i++)
                ck_assert_uint_eq(state->fleets[i].n_workers, 0);
        ck_assert_ptr_null(state->dead);
        ck_assert_uint_eq(saved_fleet("scaled")->scale, 3);
        ck_assert_int_eq(saved_fleet("stopped")->order, ORDER_STOP);
        ck_assert_uint_eq(saved_fleet("rolling")->generation, 2);
}
END_TEST

static const char *identity_of(const struct worker *worker, void *userdata)
{
        const struct state *from = userdata;

        for (size_t i = 0; i < from->n_fleets; i++) {
                for (size_t j = 0; j < from->fleets[i].n_workers; j++) {
                        if (from->fleets[i].workers[j].worker.pid == worker->pid)
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

START_TEST(a_world_that_goes_on_from_it_saves_the_same)
{
        struct fleet_settings each[8], *list[8];
        struct settings settings = {.fleets = list, .n_fleets = 8};
        struct world *world;
        uint8_t *again;
        size_t again_size;

        read_it(BOOT, PACKED_AT);
        for (size_t i = 0; i < 8; i++) {
                each[i] = settings_of(&state->fleets[i]);
                list[i] = &each[i];
        }
        ck_assert_int_eq(world_new(&settings, 1, &world), 0);
        for (size_t i = 0; i < 8; i++) {
                const struct state_fleet *saved = &state->fleets[i];
                struct fleet *fleet = world_fleet(world, saved->name);

                state_continue_fleet(fleet, saved, PACKED_AT);
                for (size_t j = 0; j < saved->n_workers; j++) {
                        const struct worker *known = &saved->workers[j].worker;

                        ck_assert_ptr_nonnull(observe_adopted(fleet, known, known->pid_start,
                                                              known->beat_pid_start, PACKED_AT));
                }
        }
        const struct state_source source = {.world = world,
                                            .dead = state->dead,
                                            .boot_id = BOOT,
                                            .identity = identity_of,
                                            .userdata = state,
                                            .now = PACKED_AT};
        ck_assert_int_eq(state_pack(&source, &again, &again_size), 0);
        ck_assert_uint_eq(again_size, size);
        ck_assert_mem_eq(again, bytes, size);
        free(again);
        world_free(world);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("state before");
        TCase *tcase = tcase_create("state before");

        tcase_add_checked_fixture(tcase, setup, teardown);
        tcase_add_loop_test(tcase, each_fleet_is_as_it_was, 0, (int)(sizeof(fleets) / sizeof(fleets[0])));
        tcase_add_test(tcase, what_was_told_and_who_is_dead_is_kept);
        tcase_add_test(tcase, on_another_boot_the_orders_are_left);
        tcase_add_test(tcase, a_world_that_goes_on_from_it_saves_the_same);
        suite_add_tcase(suite, tcase);
        return unit_main(suite);
}
