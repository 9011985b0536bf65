/* SPDX-License-Identifier: MIT */
/* The record of passes: its bytes, its replay, and what is refused. */
#include "base/hash.h"
#include "decide/plan.h"
#include "frameworks/table.h"
#include "model/fleet.h"
#include "model/fleets.h"
#include "model/world.h"
#include "observe/observe_memory.h"
#include "observe/observe_time.h"
#include "record/replay_rules.h"
#include "settings/value.h"
#include "world.h"

#define MB ((uint64_t)1 << 20)

static const struct settings_surroundings surroundings = {.frameworks = framework_traits};
static struct codec_writer segment;
static struct recorded_world recorded;
static struct plan plan;

static void begin_segment(void);

TEST_WORLD(3)
{
        t.settings.check_interval = 5 * USEC_PER_SEC;
        t.newborn.memory_bytes = 300 * MB;
        test_settle(&t);
        begin_segment();
}

static void begin_segment(void)
{
        segment.size = 0;
        uint8_t *space = codec_write_space(&segment, RECORD_HEADER_SIZE);
        ck_assert(space);
        memset(space, 0, RECORD_HEADER_SIZE);
        record_write_begin(&segment, &t.settings);
        recorded_world_free(&recorded);
        ck_assert_int_eq(recorded_world_init(&recorded, 1), 0);
}

static void end_segment(void)
{
        const struct record_header header = {
                .slot_bytes = segment.size,
                .sequence = 1,
                .used = segment.size - RECORD_HEADER_SIZE,
                .checksum = hash_bytes(HASH_INIT, segment.bytes + RECORD_HEADER_SIZE,
                                       segment.size - RECORD_HEADER_SIZE),
        };

        ck_assert(!segment.failed);
        record_header_write(&header, segment.bytes);
}

/* Records another pass, at the time of the world. */
static void record_pass(void)
{
        ck_assert_int_eq(record_write_state(&segment, &recorded, t.world, t.now), 0);
        observe_time(t.world, t.now);
        ck_assert_int_eq(plan_make(&plan, t.world, t.now), 0);
        record_write_decision(&segment, &plan, t.world, t.now);
}

static void teardown_record(void)
{
        recorded_world_free(&recorded);
        plan_free(&plan);
        plan = (struct plan){0};
        free(segment.bytes);
        segment = (struct codec_writer){0};
        teardown();
}

static char why[REPLAY_WHY_MAX];

static struct replay *open_replay(void)
{
        struct replay *replay = NULL;

        ck_assert_int_eq(replay_new(segment.bytes, segment.size, &surroundings, &replay, why), 0);
        return replay;
}

/* Replays all. Returns the number of passes that decide otherwise, or -errno. */
static int replay_all(struct replay *replay, unsigned *ret_passes)
{
        struct replay_step step;
        int r, differ = 0;

        *ret_passes = 0;
        while ((r = replay_next(replay, &step, why)) > 0) {
                differ += !step.same;
                ++*ret_passes;
        }
        return r < 0 ? r : differ;
}

static int replay_bytes(const uint8_t *bytes, size_t size)
{
        struct replay *replay = NULL;
        unsigned passes;

        int r = replay_new(bytes, size, &surroundings, &replay, why);
        if (r == 0)
                r = replay_all(replay, &passes);
        replay_free(replay);
        return r;
}

TEST(the_replay_decides_the_same)
{
        unsigned passes;

        for (unsigned i = 0; i < 50; i++) {
                if (i == 10)
                        observe_memory(test_worker(&t, 2), 900 * MB, t.now);
                if (i == 20)
                        test_worker(&t, 1)->state = WORKER_GONE;
                test_tick(&t, 0.5);
                record_pass();
        }
        end_segment();
        struct replay *replay = open_replay();
        ck_assert_int_eq(replay_all(replay, &passes), 0);
        ck_assert_uint_eq(passes, 50);
        replay_free(replay);
}

TEST(another_decision_is_seen)
{
        t.fleet->order = ORDER_STOP;
        ck_assert_int_eq(record_write_state(&segment, &recorded, t.world, t.now), 0);
        ck_assert_int_eq(plan_make(&plan, t.world, t.now), 0);
        ck_assert_uint_gt(plan.n_actions, 1);
        plan.n_actions--;
        record_write_decision(&segment, &plan, t.world, t.now);
        end_segment();
        ck_assert_int_eq(replay_bytes(segment.bytes, segment.size), 1);
}

TEST(any_damage_is_refused)
{
        record_pass();
        test_tick(&t, 1);
        record_pass();
        end_segment();
        ck_assert_int_eq(replay_bytes(segment.bytes, segment.size), 0);
        for (size_t i = 0; i < segment.size; i++) {
                segment.bytes[i] ^= 0x10;
                ck_assert_int_eq(replay_bytes(segment.bytes, segment.size), -EBADMSG);
                segment.bytes[i] ^= 0x10;
        }
        for (size_t size = 0; size < segment.size; size++)
                ck_assert_int_eq(replay_bytes(segment.bytes, size), -EBADMSG);
}

TEST(what_is_no_record_is_refused)
{
        static const uint8_t zeros[4096];
        static const char text[] = "[sqmgr]\nsocket = /run/sqmgr/control.sock\n# and more than a header\n";

        ck_assert_int_eq(replay_bytes(zeros, sizeof(zeros)), -EBADMSG);
        ck_assert_str_eq(why, "the record is empty");
        ck_assert_int_eq(replay_bytes(zeros, 0), -EBADMSG);
        ck_assert_str_eq(why, "the record is empty");
        for (size_t size = 1; size <= sizeof(text); size++) {
                ck_assert_int_eq(replay_bytes((const uint8_t *)text, size), -EBADMSG);
                ck_assert_str_eq(why, "not a record of sqmgr");
        }
        /* A segment that ends within a pass, though its checksum is right. */
        record_pass();
        segment.size--;
        end_segment();
        ck_assert_int_eq(replay_bytes(segment.bytes, segment.size), -EBADMSG);
}

TEST(a_record_of_another_format_is_named)
{
        record_pass();
        end_segment();
        codec_put_bytes(segment.bytes + sizeof(RECORD_MAGIC) - 1, 4, RECORD_VERSION + 1);
        ck_assert_int_eq(replay_bytes(segment.bytes, segment.size), -EBADMSG);
        ck_assert_str_eq(why, "the record has format 2; this sqmgr-replay reads format 1");
        ck_assert_int_eq(replay_bytes(segment.bytes, RECORD_HEADER_SIZE - 1), -EBADMSG);
        ck_assert_str_eq(why, "the record is damaged or truncated");
}

/* Records a pass of n fleets that want 10,000 workers each, and have none. */
static void record_large_fleets(size_t n)
{
        static const struct plan nothing = {.wake_at = USEC_INFINITY};
        static char names[][8] = {"a", "b", "c", "d"};
        struct fleet_settings fleets[ELEMENTSOF(names)], *list[ELEMENTSOF(names)];
        struct settings settings = t.settings;
        struct world *world;

        for (size_t i = 0; i < n; i++) {
                fleets[i] = t.fleet_settings;
                fleets[i].name = names[i];
                fleets[i].active_process_count = 10000;
                list[i] = &fleets[i];
        }
        settings.fleets = list;
        settings.n_fleets = n;
        segment.size = RECORD_HEADER_SIZE;
        record_write_begin(&segment, &settings);
        recorded_world_free(&recorded);
        ck_assert_int_eq(recorded_world_init(&recorded, n), 0);
        ck_assert_int_eq(world_new(&settings, 0, &world), 0);
        ck_assert_int_eq(record_write_state(&segment, &recorded, world, t.now), 0);
        record_write_decision(&segment, &nothing, world, t.now);
        world_free(world);
        end_segment();
}

/* A few bytes for each fleet would have the plan start 10,000 workers, in gigabytes of memory. */
TEST(a_record_that_wants_too_many_workers_is_refused)
{
        record_large_fleets(3);
        ck_assert_int_eq(replay_bytes(segment.bytes, segment.size), 1);
        record_large_fleets(4);
        ck_assert_int_eq(replay_bytes(segment.bytes, segment.size), -EBADMSG);
        ck_assert_str_eq(why, "the record wants more workers than it can have");
}

/* Adds passes in which nothing changes to the record, and plans none of them. Returns their number. */
static unsigned add_empty_passes(uint64_t work_per_byte)
{
        static const struct plan nothing = {.wake_at = USEC_INFINITY};
        unsigned n = 0;

        while (recorded.work + t.fleet->n_workers <= work_per_byte * (segment.size - RECORD_HEADER_SIZE)) {
                ck_assert_int_eq(record_write_state(&segment, &recorded, t.world, t.now), 0);
                record_write_decision(&segment, &nothing, t.world, t.now);
                n++;
        }
        return n;
}

/* A pass of a dozen bytes makes the replay visit all workers. */
TEST(a_record_that_costs_more_than_its_bytes_allow_is_refused)
{
        unsigned passes, empty;

        while (t.fleet->n_workers < 1000)
                (void)test_spawn(&t);
        record_pass();
        empty = add_empty_passes(RECORD_WORK_PER_BYTE);
        ck_assert_uint_gt(empty, 100);
        end_segment();
        struct replay *replay = open_replay();
        ck_assert_int_ge(replay_all(replay, &passes), 0);
        ck_assert_uint_eq(passes, 1 + empty);
        replay_free(replay);
        empty += add_empty_passes(REPLAY_WORK_PER_BYTE + 1);
        end_segment();
        replay = open_replay();
        ck_assert_int_eq(replay_all(replay, &passes), -EBADMSG);
        ck_assert_str_eq(why, "the record has too many passes and workers for its size");
        ck_assert_uint_lt(passes, 1 + empty);
        replay_free(replay);
}

/* A foreign record is printed on a terminal. */
TEST(a_name_that_no_fleet_can_have_is_refused)
{
        uint8_t *at = memmem(segment.bytes, segment.size, "default", 7);

        ck_assert(at);
        at[3] = '\033';
        record_pass();
        end_segment();
        ck_assert_int_eq(replay_bytes(segment.bytes, segment.size), -EBADMSG);
}

TEST(a_count_that_no_ini_can_have_is_ignored)
{
        unsigned count = t.fleet_settings.active_process_count;

        t.fleet_settings.active_process_count = UINT32_MAX;
        begin_segment();
        t.fleet_settings.active_process_count = count;
        record_pass();
        end_segment();
        struct replay *replay = open_replay();
        struct replay_step step;
        ck_assert_int_eq(replay_next(replay, &step, why), 1);
        ck_assert_uint_lt(step.world->fleets[0]->settings->active_process_count, 20000);
        replay_free(replay);
}

TEST(fields_that_this_version_does_not_know_are_skipped)
{
        static const char name[] = "doubt.stepped_back_at";
        uint8_t *at = memmem(segment.bytes, segment.size, name, strlen(name));

        ck_assert(at);
        at[0] = 'D';
        t.world->doubt.stepped_back_at = 5;
        record_pass();
        end_segment();
        struct replay *replay = open_replay();
        struct replay_step step;
        ck_assert_int_eq(replay_next(replay, &step, why), 1);
        ck_assert(step.same);
        ck_assert_uint_eq(step.world->doubt.stepped_back_at, 0);
        replay_free(replay);
}

/* Records ten readings of 300M. */
static void record_readings(void)
{
        for (unsigned i = 0; i < 10; i++) {
                t.now += 5 * USEC_PER_SEC;
                for (unsigned j = 1; j <= 3; j++)
                        observe_memory(test_worker(&t, j), 300 * MB, t.now);
                record_pass();
        }
        end_segment();
}

static bool has_start(const struct decision *decision, enum reason reason)
{
        for (size_t i = 0; i < decision->n; i++)
                if (decision->actions[i].kind == ACTION_START && decision->actions[i].reason == reason)
                        return true;
        return false;
}

TEST(a_changed_setting_shows_what_would_have_been_decided)
{
        static const char *const sets[] = {"memory_threshold=200M", "default:memory_threshold=200M"};
        unsigned passes;

        record_readings();
        struct replay *replay = open_replay();
        ck_assert_int_eq(replay_set(replay, "memory_threshold=400M", why), 0);
        ck_assert_int_eq(replay_all(replay, &passes), 0);
        replay_free(replay);

        FOREACH_ELEMENT(set, sets) {
                struct replay_step step;
                unsigned at = 0, first = 0;

                replay = open_replay();
                ck_assert_int_eq(replay_set(replay, *set, why), 0);
                while (replay_next(replay, &step, why) > 0) {
                        at++;
                        if (first == 0 && has_start(step.replayed, REASON_MEMORY))
                                first = at;
                        ck_assert(!has_start(step.recorded, REASON_MEMORY));
                }
                /* Three readings are needed. */
                ck_assert_uint_eq(first, 3);
                replay_free(replay);
        }
}

/* over_threshold lasts from readings before the segment. */
TEST(a_setting_that_is_not_of_memory_leaves_its_judgment)
{
        unsigned passes;

        t.fleet_settings.memory_threshold = 200 * MB;
        for (unsigned i = 0; i < 3; i++)
                observe_memory(test_worker(&t, 2), 300 * MB, t.now);
        ck_assert(test_worker(&t, 2)->memory.over_threshold);
        begin_segment();
        record_pass();
        end_segment();
        ck_assert_uint_gt(plan.n_actions, 0);
        struct replay *replay = open_replay();
        ck_assert_int_eq(replay_set(replay, "max_age=3650d", why), 0);
        ck_assert_int_eq(replay_all(replay, &passes), 0);
        replay_free(replay);
}

/* Records a pass. Returns two slots, to be freed, each of *ret_size bytes: the first has the pass. */
static uint8_t *record_two_slots(size_t *ret_size)
{
        record_pass();
        end_segment();
        *ret_size = segment.size;
        uint8_t *slots = malloc(2 * segment.size);
        ck_assert(slots);
        memcpy(slots, segment.bytes, segment.size);
        return slots;
}

/* Two slots: in the second one, the fleet has another name. */
TEST(a_fleet_that_a_reload_removed_can_be_changed)
{
        char *name = t.fleet_settings.name, other[] = "mailers";
        unsigned passes;

        size_t size;
        uint8_t *slots = record_two_slots(&size);
        t.fleet_settings.name = other;
        begin_segment();
        record_pass();
        end_segment();
        t.fleet_settings.name = name;
        ck_assert_uint_eq(segment.size, size);
        struct record_header header;
        ck_assert_int_eq(record_header_read(segment.bytes, size, &header), 1);
        header.sequence++;
        record_header_write(&header, segment.bytes);
        memcpy(slots + size, segment.bytes, size);

        struct replay *replay = NULL;
        ck_assert_int_eq(replay_new(slots, 2 * size, &surroundings, &replay, why), 0);
        ck_assert_int_eq(replay_set(replay, "default:max_age=3650d", why), 0);
        ck_assert_int_eq(replay_all(replay, &passes), 0);
        ck_assert_uint_eq(passes, 2);
        replay_free(replay);
        free(slots);
}

/* Two slots: the second one's bytes are not those of its header. */
TEST(a_damaged_segment_is_skipped)
{
        unsigned passes;

        size_t size;
        uint8_t *slots = record_two_slots(&size);
        memcpy(slots + size, segment.bytes, size);
        slots[2 * size - 1] ^= 1;
        struct replay *replay = NULL;
        for (int i = 0; i < 2; i++) {
                ck_assert_int_eq(replay_new(slots, 2 * size, &surroundings, &replay, why), 0);
                ck_assert_uint_eq(replay_damaged(replay), 1);
                ck_assert_int_eq(replay_all(replay, &passes), 0);
                ck_assert_uint_eq(passes, 1);
                replay_free(replay);
                /* The first one. */
                slots[2 * size - 1] ^= 1;
                slots[size - 1] ^= 1;
        }
        free(slots);
}

TEST(settings_that_cannot_be_changed_are_refused)
{
        static const char *const bad[] = {
                "memory_threshold", "=1",  "memory_threshold=",        "memory_threshold=1",
                "command=/bin/sh",  "x=1", "default:check_interval=1", ":memory_threshold=100M",
                "framework=rq",
        };
        unsigned passes;

        record_readings();
        struct replay *replay = open_replay();
        FOREACH_ELEMENT(text, bad)
                ck_assert_int_eq(replay_set(replay, *text, why), -EINVAL);
        ck_assert_int_eq(replay_set(replay, "check_interval=1s", why), 0);
        ck_assert_int_eq(replay_set(replay, "mail:max_age=1d", why), 0);
        ck_assert_int_eq(replay_all(replay, &passes), -EINVAL);
        ck_assert_str_eq(why, "the record has no fleet 'mail'");
        replay_free(replay);
}

/* No text of the ini but names of fleets and frameworks is in the record. */
TEST(no_secret_is_recorded)
{
        char secret[] = "s3cr3t", command[] = "/opt/app s3cr3t";

        t.settings.redis.password = t.settings.redis.url = secret;
        t.fleet_settings.environment = t.fleet_settings.database_url = secret;
        t.fleet_settings.command = command;
        t.fleet_settings.launch_hash = t.fleet->launches[0].launch_hash = 0;
        begin_segment();
        record_pass();
        uint64_t without = hash_bytes(HASH_INIT, segment.bytes, segment.size);
        t.fleet_settings.launch_hash = t.fleet->launches[0].launch_hash = UINT64_C(0x1234567812345678);
        begin_segment();
        record_pass();
        ck_assert_uint_eq(hash_bytes(HASH_INIT, segment.bytes, segment.size), without);
        snprintf(t.fleet->rollout.error, sizeof(t.fleet->rollout.error), "s3cr3t");
        snprintf(t.fleet->preload.refused, sizeof(t.fleet->preload.refused), "s3cr3t");
        begin_segment();
        record_pass();
        ck_assert(!memmem(segment.bytes, segment.size, secret, strlen(secret)));
        t.settings.redis.password = t.settings.redis.url = NULL;
        t.fleet_settings.environment = t.fleet_settings.database_url = t.fleet_settings.command = NULL;
}

TEST_MAIN("record", .each = {setup, teardown_record})
