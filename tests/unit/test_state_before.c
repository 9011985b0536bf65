/* SPDX-License-Identifier: MIT */
/* The state files of each version of the format, as programs that had it wrote them, are read as what they
 * were, and would be written again as they are. tests/state holds them, each by the name of its version:
 *
 * 1: an 0.1.0 (e2e4629), of a fleet in its jobs, one scaled, one whose quiet workers finish, one stopped, one
 *    whose restart waits for new workers to boot, one whose restart has halted, one in a crash loop; and one
 * with a Redis of its own that is stuck, a worker of which has just been killed and started again. 2: the
 * last before templates (4ee0e1f): a scaled fleet, found without its state; one of its workers hangs as it
 *    boots and is unproven, and one has just been started.
 * 3: the same program: a fleet that is quiet with jobs, and a native one with heartbeats in files, in a
 * restart. 4: the first with templates (6b2f580): a preloaded fleet with a template and forks of two
 * generations, and a native one. 5: the first with restarts of many hosts: a fleet whose turn in one is
 * over, and one without a group. 6: the first with counts that follow their queues: a fleet of 2 that has
 * just been scaled to 3, and one that is not scaled. 7: the first
 * that knows of memory pressure: a fleet of three, one of which has left for it. */
#include "continuity/record.h"
#include "continuity/state.h"
#include "frameworks/native/native.h"
#include "frameworks/sidekiq/format.h"
#include "model/fleets.h"
#include "model/world.h"
#include "observe/observe.h"
#include "observe/observe_template.h"
#include "rollout_hosts/group_rules.h"
#include "unit.h"

#define FLEETS_MAX 8

static const struct kept {
        const char *boot;
        usec_t packed_at;
        size_t n_fleets;
        const char *unborn; /* what stands for the heartbeat of those that have not beaten */
} kept[] = {
        [1] = {"f1d23d36-eb7b-42e3-891b-bc7eca962848", 1817461388, 8, ""},
        [2] = {"96f9cde2-d0b2-44c6-bf59-3986daa7d390", 1321816272, 1, "worker.example "},
        [3] = {"96f9cde2-d0b2-44c6-bf59-3986daa7d390", 1326238742, 2, NULL},
        [4] = {"96f9cde2-d0b2-44c6-bf59-3986daa7d390", 1339580475, 2, NULL},
        [5] = {"c2bafcc1-9376-4d28-9af9-1b0bfc1a2ed3", 3343996470, 2, NULL},
        [6] = {"c2bafcc1-9376-4d28-9af9-1b0bfc1a2ed3", 3817871991, 2, NULL},
        [7] = {"c2bafcc1-9376-4d28-9af9-1b0bfc1a2ed3", 4721076171, 1, NULL},
};

static uint8_t bytes[16 * 1024];
static size_t size;
static struct state *state;

static void setup(void)
{
        state = NULL;
}

static void teardown(void)
{
        state_free(state);
}

static void read_it(unsigned version, const char *boot, usec_t now)
{
        const char *source = getenv("srcdir");
        char path[512];

        snprintf(path, sizeof(path), "%s/tests/state/%u", source ? source : ".", version);
        FILE *file = fopen(path, "re");
        ck_assert_msg(file, "%s: %s", path, strerror(errno));
        size = fread(bytes, 1, sizeof(bytes), file);
        ck_assert_uint_lt(size, sizeof(bytes));
        fclose(file);
        ck_assert_uint_eq(bytes[8], version);
        ck_assert_int_eq(state_unpack(bytes, size, boot, now, &state), STATE_READ);
        ck_assert_uint_eq(state->n_fleets, kept[version].n_fleets);
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
        bool unproven;
        bool forked;
};

static const struct saved {
        unsigned version;
        const char *name;
        uint64_t generation;
        const struct traits *traits;
        enum fleet_order order;
        unsigned scale;
        unsigned scaled;
        unsigned count; /* active_process_count */
        enum rollout_state rollout;
        unsigned failures;
        unsigned crashes;
        enum heartbeat_place heartbeat;
        size_t n_templates;
        size_t n_workers;
        struct saved_worker workers[4];
} fleets[] = {
        {1, "default", 1, &sidekiq_traits, .count = 3, .n_workers = 3,
         .workers = {{1, 20837, 1, WORKER_ACTIVE, REASON_NONE},
                     {2, 20838, 1, WORKER_ACTIVE, REASON_NONE},
                     {3, 20839, 1, WORKER_ACTIVE, REASON_NONE}}},
        {1, "scaled", 1, &sidekiq_traits, .scale = 3, .count = 2, .n_workers = 3,
         .workers = {{1, 20840, 1, WORKER_ACTIVE, REASON_NONE},
                     {2, 20841, 1, WORKER_ACTIVE, REASON_NONE},
                     {3, 21029, 1, WORKER_ACTIVE, REASON_NONE}}},
        {1, "held", 1, &sidekiq_traits, ORDER_QUIET, .count = 2, .n_workers = 2,
         .workers = {{1, 20850, 1, WORKER_QUIET, REASON_OPERATOR},
                     {2, 20851, 1, WORKER_QUIET, REASON_OPERATOR}}},
        {1, "stopped", 1, &sidekiq_traits, ORDER_STOP, .count = 2},
        {1, "rolling", 2, &sidekiq_traits, .count = 2, .rollout = ROLLOUT_RUNNING, .n_workers = 4,
         .workers = {{1, 20854, 1, WORKER_ACTIVE, REASON_NONE},
                     {2, 20855, 1, WORKER_ACTIVE, REASON_NONE},
                     {3, 22146, 2, WORKER_STARTING, REASON_NONE},
                     {4, 22147, 2, WORKER_STARTING, REASON_NONE}}},
        {1, "halted", 3, &sidekiq_traits, .count = 2, .rollout = ROLLOUT_HALTED, .failures = 3, .crashes = 4,
         .n_workers = 2,
         .workers = {{3, 21226, 2, WORKER_ACTIVE, REASON_NONE}, {4, 21227, 2, WORKER_ACTIVE, REASON_NONE}}},
        {1, "failing", 1, &sidekiq_traits, .count = 2, .crashes = 2},
        {1, "away", 1, &sidekiq_traits, .count = 2, .n_workers = 2,
         .workers = {{1, 22806, 1, WORKER_STARTING, REASON_NONE}, {2, 20919, 1, WORKER_ACTIVE, REASON_NONE}}},
        {2, "default", 1, &sidekiq_traits, .scale = 4, .count = 2, .n_workers = 4,
         .workers = {{1, 12808, 1, WORKER_ACTIVE, REASON_NONE},
                     {2, 12809, 1, WORKER_ACTIVE, REASON_NONE},
                     {3, 13095, 1, WORKER_STARTING, REASON_NONE, .unproven = true},
                     {4, 13271, 1, WORKER_STARTING, REASON_NONE}}},
        {3, "default", 1, &sidekiq_traits, ORDER_QUIET, .count = 1, .n_workers = 1,
         .workers = {{1, 13436, 1, WORKER_QUIET, REASON_OPERATOR}}},
        {3, "native", 2, &native_traits, .count = 2, .rollout = ROLLOUT_DONE, .heartbeat = HEARTBEAT_FILE,
         .n_workers = 4,
         .workers = {{1, 13437, 1, WORKER_QUIET, REASON_RESTART},
                     {2, 13438, 1, WORKER_QUIET, REASON_RESTART},
                     {3, 13764, 2, WORKER_ACTIVE, REASON_NONE},
                     {4, 13765, 2, WORKER_ACTIVE, REASON_NONE}}},
        {4, "default", 2, &sidekiq_traits, .count = 2, .rollout = ROLLOUT_DONE, .n_templates = 1,
         .n_workers = 3,
         .workers = {{1, 14392, 1, WORKER_QUIET, REASON_RESTART, .forked = true},
                     {3, 14598, 2, WORKER_ACTIVE, REASON_NONE, .forked = true},
                     {4, 14601, 2, WORKER_ACTIVE, REASON_NONE, .forked = true}}},
        {4, "native", 1, &native_traits, .count = 1, .heartbeat = HEARTBEAT_FILE, .n_workers = 1,
         .workers = {{1, 14298, 1, WORKER_ACTIVE, REASON_NONE}}},
        {5, "default", 2, &sidekiq_traits, .count = 2, .rollout = ROLLOUT_DONE, .n_workers = 2,
         .workers = {{3, 11924, 2, WORKER_ACTIVE, REASON_NONE}, {4, 11925, 2, WORKER_ACTIVE, REASON_NONE}}},
        {5, "alone", 1, &sidekiq_traits, .count = 1, .n_workers = 1,
         .workers = {{1, 834, 1, WORKER_ACTIVE, REASON_NONE}}},
        {6, "default", 1, &sidekiq_traits, .count = 2, .scaled = 3, .n_workers = 3,
         .workers = {{1, 3562, 1, WORKER_ACTIVE, REASON_NONE},
                     {2, 3563, 1, WORKER_ACTIVE, REASON_NONE},
                     {3, 4369, 1, WORKER_ACTIVE, REASON_NONE}}},
        {6, "fixed", 1, &sidekiq_traits, .count = 1, .n_workers = 1,
         .workers = {{1, 3564, 1, WORKER_ACTIVE, REASON_NONE}}},
        {7, "default", 1, &sidekiq_traits, .count = 3, .n_workers = 2,
         .workers = {{1, 24400, 1, WORKER_ACTIVE, REASON_NONE}, {2, 24401, 1, WORKER_ACTIVE, REASON_NONE}}},
};

static void assert_identity(const struct saved *fleet, const struct saved_worker *worker,
                            const char *identity)
{
        char expected[64];

        if (worker->state == WORKER_STARTING) {
                ck_assert_str_eq(identity, kept[fleet->version].unborn);
        } else if (fleet->heartbeat == HEARTBEAT_FILE) {
                ck_assert_str_eq(identity, "");
        } else {
                snprintf(expected, sizeof(expected), "worker.example:%d:", worker->pid);
                ck_assert_int_eq(strncmp(identity, expected, strlen(expected)), 0);
        }
}

START_TEST(each_fleet_is_as_it_was)
{
        const struct saved *expected = &fleets[_i];
        const struct kept *file = &kept[expected->version];

        read_it(expected->version, file->boot, file->packed_at + USEC_PER_SEC);
        const struct state_fleet *saved = saved_fleet(expected->name);

        ck_assert_uint_eq(saved->generation, expected->generation);
        ck_assert_int_eq(saved->order, expected->order);
        ck_assert(!saved->force);
        ck_assert_uint_eq(saved->scale, expected->scale);
        ck_assert_uint_eq(saved->scale_for, expected->count);
        ck_assert_uint_eq(saved->scaled, expected->scaled);
        ck_assert_uint_eq(saved->framework, expected->traits->id);
        ck_assert_int_eq(saved->rollout.state, expected->rollout);
        ck_assert_uint_eq(saved->rollout.failures, expected->failures);
        ck_assert_uint_eq(saved->crash.count, expected->crashes);
        ck_assert_uint_eq(saved->heartbeat, expected->heartbeat);
        ck_assert_uint_eq(saved->n_templates, expected->n_templates);
        ck_assert_uint_eq(saved->n_workers, expected->n_workers);
        for (size_t i = 0; i < saved->n_workers; i++) {
                const struct worker *worker = &saved->workers[i].worker;

                ck_assert_uint_eq(worker->index, expected->workers[i].index);
                ck_assert_int_eq(worker->process.pid, expected->workers[i].pid);
                ck_assert_uint_eq(worker->generation, expected->workers[i].generation);
                ck_assert_int_eq(worker->state, expected->workers[i].state);
                ck_assert_int_eq(worker->reason, expected->workers[i].reason);
                ck_assert_int_eq(worker->process.unproven, expected->workers[i].unproven);
                ck_assert_int_eq(worker->process.forked, expected->workers[i].forked);
                ck_assert(!worker->process.awaits_go && !worker->orders.quiet_uncaught &&
                          !worker->orders.finishes_job);
                ck_assert_uint_gt(worker->process.start, 0);
                ck_assert_uint_le(worker->spawned_at, file->packed_at);
                assert_identity(expected, &expected->workers[i], saved->workers[i].identity);
        }
}
END_TEST

START_TEST(what_was_told_and_who_is_dead_is_kept)
{
        const usec_t packed_at = kept[1].packed_at;

        read_it(1, kept[1].boot, packed_at);
        const struct state_fleet *halted = saved_fleet("halted"), *failing = saved_fleet("failing");

        ck_assert_ptr_nonnull(strstr(halted->rollout.error, "3 new workers in a row failed; the last: "));
        ck_assert_ptr_nonnull(strstr(failing->crash_last, "exited with status 1 before its first beat"));
        ck_assert_uint_gt(failing->crash.next_at, packed_at);
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
END_TEST

START_TEST(the_template_is_kept)
{
        read_it(4, kept[4].boot, kept[4].packed_at);
        const struct state_fleet *saved = saved_fleet("default");
        const struct template *template = &saved->templates[0];

        ck_assert_int_eq(template->state, TEMPLATE_READY);
        ck_assert_uint_eq(template->generation, 2);
        ck_assert_int_eq(template->pid, 14508);
        ck_assert_uint_gt(template->pid_start, 0);
        ck_assert_int_eq(template->serving_pid, 14508);
        ck_assert_uint_eq(template->serving_start, template->pid_start);
        ck_assert_uint_eq(template->memory_bytes, 30334976);
        ck_assert_str_eq(saved->preload.refused, "");
        ck_assert_uint_eq(saved->preload.failures, 0);
        ck_assert_uint_gt(saved->preload.slowest_fork, 0);
}
END_TEST

START_TEST(whose_place_stays_empty_is_kept)
{
        read_it(7, kept[7].boot, kept[7].packed_at);
        ck_assert_uint_eq(saved_fleet("default")->places_left, 1);
        ck_assert_uint_eq(saved_fleet("default")->grown[0].generation, 0);
}
END_TEST

START_TEST(on_another_boot_the_orders_are_left)
{
        read_it((unsigned)_i, "another", 5 * USEC_PER_SEC);
        for (size_t i = 0; i < state->n_fleets; i++) {
                ck_assert_uint_eq(state->fleets[i].n_workers, 0);
                ck_assert_uint_eq(state->fleets[i].n_templates, 0);
        }
        ck_assert_ptr_null(state->dead);
        for (size_t i = 0; i < ELEMENTSOF(fleets); i++) {
                if (fleets[i].version != (unsigned)_i)
                        continue;
                const struct state_fleet *saved = saved_fleet(fleets[i].name);

                ck_assert_uint_eq(saved->scale, fleets[i].scale);
                ck_assert_int_eq(saved->order, fleets[i].order);
                ck_assert_uint_eq(saved->generation, fleets[i].generation);
        }
}
END_TEST

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
                .traits = saved->framework == native_traits.id ? &native_traits : &sidekiq_traits,
                .heartbeat = saved->heartbeat,
                .launch_hash = saved->launch_hash,
                .redis_url = saved->redis_url[0] != '\0' ? saved->redis_url : NULL,
                .active_process_count = saved->scale_for,
                .active_process_max = saved->scaled > 0 ? saved->scaled + 1 : 0,
        };
}

static void go_on(struct fleet *fleet, const struct state_fleet *saved, usec_t now)
{
        state_continue_fleet(fleet, saved, now);
        for (size_t i = 0; i < saved->n_templates; i++) {
                const struct template *known = &saved->templates[i];

                ck_assert_ptr_nonnull(
                        template_observe_adopted(fleet, known, true, known->pid_start, known->serving_start));
        }
        for (size_t i = 0; i < saved->n_workers; i++) {
                const struct worker *known = &saved->workers[i].worker;

                ck_assert_ptr_nonnull(
                        observe_adopted(fleet, known, known->process.start, known->process.beat_start, now));
        }
}

START_TEST(the_turn_in_a_restart_of_many_hosts_is_kept)
{
        read_it(5, kept[5].boot, kept[5].packed_at);
        const struct state_fleet *saved = saved_fleet("default");

        struct record_reader reader = {
                .at = saved->features.bytes, .left = saved->features.size, .now = saved->features.now};
        size_t length;
        ck_assert_int_eq(strncmp(record_read_text(&reader, RECORD_TEXT_MAX, &length), "rollout-hosts", 13),
                         0);
        struct record_reader part = record_read_inner(&reader);
        ck_assert_uint_eq(reader.left, 0);
        struct rollout_group group;
        ck_assert(rollout_group_unpack(&part, "g", &group));
        ck_assert_uint_eq(group.number, 1);
        ck_assert_uint_eq(strlen(group.id), 32);
        ck_assert_int_eq(group.turn, HOST_TURN_DONE);
        ck_assert(group.begun && group.trusted);
        ck_assert_uint_gt(group.began_at, 0);
        ck_assert_uint_gt(group.done_at, group.began_at);
        ck_assert_ptr_null(saved_fleet("alone")->features.bytes);
}
END_TEST

/* As the features that have read them would. */
static void write_features(struct record_writer *writer, const struct fleet *fleet, void *userdata _unused_)
{
        const struct state_features *features = &saved_fleet(fleet->settings->name)->features;

        if (features->size == 0)
                return;
        uint8_t *at = record_write_space(writer, features->size);
        ck_assert_ptr_nonnull(at);
        memcpy(at, features->bytes, features->size);
}

START_TEST(a_world_that_goes_on_from_it_saves_the_same)
{
        const struct kept *file = &kept[_i];
        struct fleet_settings each[FLEETS_MAX], *list[FLEETS_MAX];
        struct settings settings = {.fleets = list, .n_fleets = file->n_fleets, .pressure_limit = 20};
        struct world *world;
        uint8_t *again;
        size_t again_size;

        read_it((unsigned)_i, file->boot, file->packed_at);
        for (size_t i = 0; i < state->n_fleets; i++) {
                each[i] = settings_of(&state->fleets[i]);
                list[i] = &each[i];
        }
        ck_assert_int_eq(world_new(&settings, 1, &world), 0);
        for (size_t i = 0; i < state->n_fleets; i++)
                go_on(world_fleet(world, state->fleets[i].name), &state->fleets[i], file->packed_at);
        const struct state_source source = {.world = world,
                                            .features = write_features,
                                            .features_userdata = state,
                                            .dead = state->dead,
                                            .boot_id = file->boot,
                                            .identity = identity_of,
                                            .userdata = state,
                                            .now = file->packed_at};
        ck_assert_int_eq(state_pack(&source, &again, &again_size), 0);
        ck_assert_uint_eq(again_size, size);
        ck_assert_mem_eq(again, bytes, size);
        free(again);
        world_free(world);
}
END_TEST

/* Of a later version nothing is believed, however much of it could be read. */
START_TEST(what_a_later_version_wrote_is_refused_and_said_to_be_that)
{
        struct state *read = NULL;
        const struct kept *newest = &kept[ELEMENTSOF(kept) - 1];

        read_it(ELEMENTSOF(kept) - 1, newest->boot, newest->packed_at);
        bytes[8] = ELEMENTSOF(kept);
        ck_assert_int_eq(state_unpack(bytes, size, newest->boot, newest->packed_at, &read), STATE_NEWER);
        ck_assert_ptr_null(read);
        bytes[8] = 0;
        ck_assert_int_eq(state_unpack(bytes, size, newest->boot, newest->packed_at, &read), STATE_GARBLED);
        ck_assert_ptr_null(read);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("state before");
        TCase *tcase = tcase_create("state before");

        tcase_add_checked_fixture(tcase, setup, teardown);
        tcase_add_loop_test(tcase, each_fleet_is_as_it_was, 0, ELEMENTSOF(fleets));
        tcase_add_test(tcase, what_was_told_and_who_is_dead_is_kept);
        tcase_add_test(tcase, the_template_is_kept);
        tcase_add_test(tcase, the_turn_in_a_restart_of_many_hosts_is_kept);
        tcase_add_test(tcase, whose_place_stays_empty_is_kept);
        tcase_add_loop_test(tcase, on_another_boot_the_orders_are_left, 1, ELEMENTSOF(kept));
        tcase_add_loop_test(tcase, a_world_that_goes_on_from_it_saves_the_same, 1, ELEMENTSOF(kept));
        tcase_add_test(tcase, what_a_later_version_wrote_is_refused_and_said_to_be_that);
        suite_add_tcase(suite, tcase);
        return unit_main(suite);
}
