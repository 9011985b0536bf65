/* SPDX-License-Identifier: MIT */
/* What outlives sqmgr of templates, and of what is forked from them: packed and unpacked it is the same, and
 * bytes that were tampered with are refused. */
/* promises: P4 */
#include "model/fleets.h"
#include "model/world.h"
#include "observe/observe_template.h"
#include "state_file.h"
#include "state_world.h"

static void setup(void)
{
        state_world_open();
        test_preload(&t);
}

static void pack_world(const struct world *world)
{
        const struct state_source source = {.world = world, .boot_id = BOOT, .now = t.now};

        pack_source(&source);
}

static void pack(void)
{
        pack_world(t.world);
}

/* Each field has a value of its own, so that none can pass for another. */
static void make_history(void)
{
        t.fleet->generation = t.fleet->newest_generation = 7;
        t.fleet->launches[0].generation = 7;
        t.fleet->templates[0] = (struct template){
                .fleet = t.fleet,
                .state = TEMPLATE_READY,
                .generation = 6,
                .pid = 4001,
                .pid_start = 5001,
                .serving_pid = 4002,
                .serving_start = 5002,
                .started_at = t.now - 11,
                .state_at = t.now - 12,
                .memory_bytes = 6001,
        };
        t.fleet->templates[1] = (struct template){
                .fleet = t.fleet,
                .state = TEMPLATE_LOADING,
                .generation = 7,
                .pid = 4003,
                .pid_start = 5003,
                .started_at = t.now - 13,
                .state_at = t.now - 14,
                .memory_bytes = 6002,
        };
        t.fleet->preload = (struct preload){
                .refused = "it cannot be forked",
                .refused_generation = 5,
                .failures = 2,
                .template_bytes = 6003,
                .slowest_fork = 701,
        };
}

TEST(what_was_refused_is_refused_still)
{
        t.newborn_template.unsafe = "it cannot be forked";
        test_settle(&t);
        test_after(&t, 2, test_templates(&t), 0);
        pack();
        const struct state_fleet *saved = unpack(BOOT, t.now);
        ck_assert_str_eq(saved->preload.refused, t.fleet->preload.refused);
        ck_assert_str_eq(quoted_reveal(&saved->preload.quoted), "it cannot be forked");
        ck_assert_int_eq(saved->templates[0].state, TEMPLATE_NONE);
}

TEST(templates_go_on_where_they_were)
{
        struct world *world;

        make_history();
        pack();
        const struct state_fleet *saved = unpack(BOOT, t.now);
        for (size_t i = 0; i < 2; i++)
                assert_template_equal(&saved->templates[i], &t.fleet->templates[i]);

        ck_assert_int_eq(world_new(&t.settings, 1, &world), 0);
        struct fleet *fleet = world->fleets[0];
        state_continue_fleet(fleet, saved, t.now);
        ck_assert_str_eq(fleet->preload.refused, "it cannot be forked");
        ck_assert_uint_eq(fleet->preload.refused_generation, 5);
        ck_assert_uint_eq(fleet->preload.failures, 2);
        ck_assert_uint_eq(fleet->preload.slowest_fork, 701);
        ck_assert_uint_eq(fleet->preload.template_bytes, 6003);
        for (size_t i = 0; i < 2; i++)
                ck_assert_ptr_nonnull(template_observe_adopted(fleet, &saved->templates[i], true,
                                                               saved->templates[i].pid_start,
                                                               saved->templates[i].serving_start));
        _cleanup_free_ uint8_t *before = bytes;
        size_t before_size = size;
        bytes = NULL;
        fleet->redis_at = t.fleet->redis_at;
        fleet->random = t.fleet->random;
        pack_world(world);
        ck_assert_uint_eq(size, before_size);
        ck_assert_mem_eq(bytes, before, size);
        world_free(world);
}

TEST(another_boot_ends_the_templates_and_keeps_what_was_refused)
{
        make_history();
        pack();
        const struct state_fleet *saved = unpack("another", t.now);

        for (size_t i = 0; i < TEMPLATES_MAX; i++)
                ck_assert_int_eq(saved->templates[i].state, TEMPLATE_NONE);
        ck_assert_str_eq(saved->preload.refused, "it cannot be forked");
        ck_assert_uint_eq(saved->preload.refused_generation, 5);
}

/* One place has one worker: else the whole state would be garbled. */
TEST(a_fork_that_has_come_forward_is_reported_once)
{
        make_history();
        struct template *template = &t.fleet->templates[0];

        template_observe_fork_asked(template, 2, REASON_NONE, 0, t.now - 3);
        const struct worker *worker = test_hello(&t, template);
        pack();
        const struct state_fleet *saved = unpack(BOOT, t.now);
        ck_assert_uint_eq(saved->n_workers, 1);
        const struct worker *reported = &saved->workers[0].worker;
        ck_assert_int_eq(reported->process.pid, worker->process.pid);
        ck_assert_uint_eq(reported->generation, 6);
        ck_assert_uint_eq(reported->spawned_at, t.now - 3);
        ck_assert(reported->process.forked && reported->process.awaits_go);
}

TEST(what_no_template_can_be_is_garbled)
{
        struct template *template = &t.fleet->templates[1];

        make_history();
        const struct template good = *template;
        const struct template bad[] = {
                {.state = _TEMPLATE_STATE_MAX, .generation = 7, .pid = 1},
                {.state = TEMPLATE_READY, .generation = 0, .pid = 1},
                {.state = TEMPLATE_READY, .generation = UINT64_MAX, .pid = 1},
                {.state = TEMPLATE_READY, .generation = 7, .pid = 0},
                {.state = TEMPLATE_READY, .generation = 7, .pid = -1},
                {.state = TEMPLATE_READY, .generation = 7, .pid = 1, .serving_pid = -1},
        };
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                *template = bad[i];
                pack();
                ck_assert_int_eq(outcome(bytes, size), STATE_GARBLED);
        }
        *template = good;
        pack();
        ck_assert_int_eq(outcome(bytes, size), STATE_READ);
}

/* Behind the templates: the lengths of three texts that quote nothing, the number of workers, the size of
 * what features keep, the number of the dead. */
#define NUMBERS_BEHIND   6
#define TEMPLATE_NUMBERS 9
#define LAUNCH_NUMBERS   (1 + 2 * LAUNCHES_KEPT)
/* Behind the text of what was refused: its generation, failures, slowest fork, size; templates; whether the
 * rollout is elsewhere, and the launches. */
#define PRELOAD_NUMBERS (4 + TEMPLATES_MAX * TEMPLATE_NUMBERS + 1 + LAUNCH_NUMBERS)

TEST(a_text_that_cannot_be_is_garbled)
{
        snprintf(t.fleet->preload.refused, sizeof(t.fleet->preload.refused), "no");
        t.fleet->preload.refused_generation = 1;
        pack();
        ck_assert_int_eq(outcome(bytes, size), STATE_READ);
        /* One that is longer than all that is left, and one with an end in it. */
        uint8_t *length = bytes + size - ((NUMBERS_BEHIND + PRELOAD_NUMBERS) * 8) - 2 - 8;
        ck_assert_uint_eq(*length, 2);
        length[1] = 1;
        seal(bytes, size);
        ck_assert_int_eq(outcome(bytes, size), STATE_GARBLED);
        length[1] = 0;
        length[8] = 0;
        seal(bytes, size);
        ck_assert_int_eq(outcome(bytes, size), STATE_GARBLED);
}

TEST(names_what_is_wrong_with_the_bytes)
{
        make_history();
        pack();
        assert_truncation_is_found();
        assert_changes_are_found();
}

/* Most of it in what is of templates. */
TEST(garbage_behind_a_good_checksum_does_no_harm)
{
        make_history();
        pack();
        assert_garbage_does_no_harm(250);
}

TEST_MAIN("state templates", .each = {setup, teardown})
