/* SPDX-License-Identifier: MIT */
/* What outlives sqmgr: packed and unpacked it is the same, and bytes that were tampered with are refused. */
/* promises: P4 */
#include "continuity/codec.h"
#include "continuity/state.h"
#include "frameworks/native/native.h"
#include "frameworks/sidekiq/format.h"
#include "model/deadlines.h"
#include "model/fleets.h"
#include "model/world.h"
#include "observe/observe.h"
#include "observe/observe_template.h"
#include "world.h"

#define BOOT "the-boot"

#define STATE_HEAD 28 /* bytes before those that the checksum is of */

static struct test_world t;
static uint8_t *bytes;
static size_t size;
static struct state *state;

static struct state_dead *dead;

static void setup(void)
{
        test_world_open(&t, 2);
        bytes = NULL;
        state = NULL;
        dead = NULL;
}

static void teardown(void)
{
        state_free(state);
        free(bytes);
        test_world_close(&t);
}

static void pack_source(const struct state_source *source)
{
        free(bytes);
        ck_assert_int_eq(state_pack(source, &bytes, &size), 0);
}

static const struct state_fleet *unpack(const char *boot, usec_t now)
{
        state_free(state);
        state = NULL;
        ck_assert_int_eq(state_unpack(bytes, size, boot, now, &state), STATE_READ);
        return &state->fleets[0];
}

static int outcome(const uint8_t *changed, size_t length)
{
        struct state *read = NULL;
        int r = state_unpack(changed, length, BOOT, t.now, &read);

        ck_assert((r == STATE_READ) == (!!read));
        state_free(read);
        return r;
}

/* Gives the bytes a checksum that agrees, so that what is behind it is tried. */
static void seal(uint8_t *changed, size_t length)
{
        uint64_t sum = 0xcbf29ce484222325U;

        for (size_t i = STATE_HEAD; i < length; i++)
                sum = (sum ^ changed[i]) * 0x100000001b3U;
        for (unsigned i = 0; i < 8; i++) {
                changed[12 + i] = (uint8_t)((length - STATE_HEAD) >> (8 * i));
                changed[20 + i] = (uint8_t)(sum >> (8 * i));
        }
}

/* Each part of the bytes is in memory of just its size, so that a read beyond it is seen. */
static void assert_truncation_is_found(void)
{
        for (size_t length = 1; length < size; length++) {
                uint8_t *part = malloc(length);

                memcpy(part, bytes, length);
                ck_assert_int_eq(outcome(part, length), STATE_TRUNCATED);
                if (length > STATE_HEAD) {
                        seal(part, length);
                        ck_assert_int_ge(outcome(part, length), 0);
                }
                free(part);
        }
}

static void assert_changes_are_found(void)
{
        for (size_t i = 0; i < size; i++) {
                bytes[i] ^= 0x20;
                ck_assert_int_ne(outcome(bytes, size), STATE_READ);
                bytes[i] ^= 0x20;
        }
}

static uint64_t random_next(uint64_t below)
{
        static uint64_t random_state = 1;

        random_state = random_state * 6364136223846793005U + 1442695040888963407U;
        return (random_state >> 33) % below;
}

/* The end may be cut off. */
static void assert_garbage_does_no_harm(void)
{
        unsigned outcomes[STATE_NEWER + 1] = {0};

        for (unsigned round = 0; round < 20000; round++) {
                size_t length =
                        random_next(4) == 0 ? STATE_HEAD + 1 + random_next(size - STATE_HEAD - 1) : size;
                uint8_t *changed = malloc(length);

                memcpy(changed, bytes, length);
                for (uint64_t n = 1 + random_next(4); n > 0; n--)
                        changed[length - 1 - random_next(length - STATE_HEAD)] =
                                (uint8_t)(random_next(2) ? random_next(256) : 0xff * random_next(2));
                seal(changed, length);
                int r = outcome(changed, length);
                ck_assert_int_ge(r, 0);
                outcomes[r]++;
                free(changed);
        }
        ck_assert_uint_gt(outcomes[STATE_READ], 0);
        ck_assert_uint_gt(outcomes[STATE_GARBLED], 0);
}

static const char *identity_of(const struct worker *worker, void *userdata _unused_)
{
        return worker->index == 1 ? "host:1:nonce" : NULL;
}

static void pack_world(const struct world *world, usec_t now)
{
        const struct state_source source = {
                .world = world,
                .dead = dead,
                .boot_id = BOOT,
                .identity = identity_of,
                .now = now,
        };

        pack_source(&source);
}

static void pack(void)
{
        pack_world(t.world, t.now);
}

static void make_history(void)
{
        struct worker *worker = test_spawn_ready(&t);
        struct worker *quiet = test_spawn_ready(&t);

        worker->evidence.threads_witness = true;
        worker->memory.over_threshold = true;
        worker->last_uptime = 77;
        observe_quieted(quiet, REASON_MEMORY, 0, t.now);
        quiet->heartbeat.hung = true;
        test_spawn(&t);
        t.fleet->generation = t.fleet->newest_generation = 7;
        t.fleet->launches[0].generation = 7;
        t.fleet->order = ORDER_QUIET;
        t.fleet->scale = 3;
        t.fleet->random = 99;
        t.fleet->rollout = (struct rollout){.state = ROLLOUT_HALTED,
                                            .total = 2,
                                            .started_at = t.now - 5,
                                            .progress_at = t.now - 4,
                                            .failures = 3,
                                            .failed_at = t.now - 3,
                                            .error = "it failed"};
        t.fleet->crash = (struct backoff){
                .count = 4, .failed_at = t.now - 2, .next_at = t.now + 30 * USEC_PER_SEC, .freed = 1};
        t.fleet->churn = (struct backoff){.count = 1, .failed_at = t.now - 1, .next_at = t.now - 1};
        snprintf(t.fleet->crash_last, sizeof(t.fleet->crash_last), "it died");
}

TEST(goes_on_where_it_was_on_the_same_boot)
{
        make_history();
        pack();
        const struct state_fleet *saved = unpack(BOOT, t.now + USEC_PER_HOUR);

        ck_assert_str_eq(saved->name, "default");
        ck_assert_uint_eq(saved->n_workers, 3);
        ck_assert_int_eq(saved->workers[1].worker.state, WORKER_QUIET);
        ck_assert_uint_eq(saved->workers[1].worker.orders.quiet_at, t.fleet->workers[1]->orders.quiet_at);
        ck_assert_str_eq(saved->workers[0].identity, "host:1:nonce");
        ck_assert_str_eq(saved->workers[1].identity, "");

        struct fleet fleet = {.settings = t.fleet->settings};
        state_continue_fleet(&fleet, saved, t.now);
        ck_assert_uint_eq(fleet.rollout.failed_at, t.now - 3);
        ck_assert_uint_eq(fleet.crash.next_at, t.now + 30 * USEC_PER_SEC);
        ck_assert_uint_eq(fleet.churn.next_at, 0);
}

TEST(the_dead_are_kept_until_they_have_been_followed_up)
{
        make_history();
        struct worker *worker = t.fleet->workers[0];
        char names[][16] = {"default", "other", "host:1:nonce", "host:2:nonce"};
        struct state_dead second = {.fleet = names[0],
                                    .worker = {.worker = *worker, .identity = names[3]},
                                    .exit = {.known = true, .by_signal = true, .status = 9}};
        struct state_dead first = {
                .next = &second, .fleet = names[1], .worker = {.worker = *worker, .identity = names[2]}};

        second.worker.worker.heartbeat.busy = 3;
        dead = &first;
        pack();
        unpack(BOOT, t.now);
        ck_assert_str_eq(state->dead->fleet, "other");
        ck_assert(!state->dead->exit.known);
        ck_assert_str_eq(state->dead->next->fleet, "default");
        ck_assert_str_eq(state->dead->next->worker.identity, "host:2:nonce");
        ck_assert_uint_eq(state->dead->next->worker.worker.spawned_at, worker->spawned_at);
        ck_assert_uint_eq(state->dead->next->worker.worker.heartbeat.busy, 3);
        ck_assert(state->dead->next->exit.known && state->dead->next->exit.by_signal);
        ck_assert_int_eq(state->dead->next->exit.status, 9);
        ck_assert_ptr_null(state->dead->next->next);

        unpack("another", t.now);
        ck_assert_ptr_null(state->dead);
}

TEST(another_boot_ends_the_workers_and_keeps_the_orders)
{
        make_history();
        pack();
        usec_t now = USEC_PER_SEC;
        const struct state_fleet *saved = unpack("another", now);

        ck_assert_uint_eq(saved->n_workers, 0);
        ck_assert_uint_eq(saved->generation, 7);
        ck_assert_int_eq(saved->order, ORDER_QUIET);
        ck_assert_uint_eq(saved->crash.next_at, now + 30 * USEC_PER_SEC);
        ck_assert_uint_le(saved->rollout.failed_at, now);
}

static void pack_orders(usec_t now)
{
        const struct state_source source = {.world = t.world, .boot_id = BOOT, .now = now, .orders = true};

        pack_source(&source);
}

TEST(of_the_orders_only_what_operators_ordered_and_a_halt_survive_a_reboot)
{
        struct fleet fleet = {.settings = t.fleet->settings, .random = 5};

        make_history();
        t.fleet->automatic_count = 4;
        /* The state would not name this fleet: which workers it has is being searched for. */
        t.fleet->unknown = true;
        pack_orders(t.now);
        const struct state_fleet *saved = unpack("another", USEC_PER_HOUR);
        ck_assert_uint_eq(saved->n_workers, 0);
        ck_assert_uint_eq(saved->features.size, 0);
        state_continue_fleet(&fleet, saved, USEC_PER_HOUR);
        ck_assert_uint_eq(fleet.generation, 7);
        ck_assert_int_eq(fleet.order, ORDER_QUIET);
        ck_assert_uint_eq(fleet.scale, 3);
        ck_assert_int_eq(fleet.rollout.state, ROLLOUT_HALTED);
        ck_assert_str_eq(fleet.rollout.error, "it failed");
        /* Before this boot, however long it takes. */
        ck_assert_uint_eq(fleet.rollout.failed_at, 1);
        ck_assert_uint_eq(fleet.crash.count, 0);
        ck_assert_uint_eq(fleet.crash.next_at, 0);
        ck_assert_uint_eq(fleet.automatic_count, 0);
        ck_assert_uint_eq(fleet.random, 5);
}

TEST(after_a_reboot_no_restart_runs_and_a_return_is_still_one)
{
        static const enum rollout_state states[] = {ROLLOUT_RUNNING, ROLLOUT_DONE, ROLLOUT_ABORTED};

        for (size_t i = 0; i < ELEMENTSOF(states); i++)
                for (unsigned returned = 0; returned < 2; returned++) {
                        t.fleet->rollout = (struct rollout){.state = states[i], .returned = returned};
                        pack_orders(t.now);
                        const struct state_fleet *saved = unpack("another", t.now);
                        ck_assert_int_eq(saved->rollout.state, returned ? states[i] : ROLLOUT_NONE);
                        ck_assert_int_eq(saved->rollout.returned, returned);
                }
}

TEST(orders_that_only_grow_older_are_the_same_bytes)
{
        make_history();
        pack_orders(0);
        _cleanup_free_ uint8_t *before = bytes;
        size_t before_size = size;
        bytes = NULL;
        t.fleet->rollout.failed_at++;
        test_spawn_ready(&t);
        pack_orders(0);
        ck_assert_uint_eq(size, before_size);
        ck_assert_mem_eq(bytes, before, size);
        t.fleet->scale++;
        pack_orders(0);
        ck_assert_mem_ne(bytes, before, size);
}

TEST(a_scale_lapses_with_the_count_that_it_was_given_for)
{
        make_history();
        pack();
        const struct state_fleet *saved = unpack(BOOT, t.now);
        struct fleet_settings other = t.fleet_settings;
        struct fleet fleet = {.settings = &other};

        other.active_process_count++;
        state_continue_fleet(&fleet, saved, t.now);
        ck_assert_uint_eq(fleet.scale, 0);
}

TEST(a_worker_that_is_gone_is_not_kept)
{
        test_exit(&t, test_spawn(&t), 0);
        pack();
        ck_assert_uint_eq(unpack(BOOT, t.now)->n_workers, 0);
}

#define STATE_FILE_VERSION 1 /* the one that is written */
#define STATE_FILE_WRITTEN "1"
#define STATE_FILE_MAX     (16 * 1024)

/* Reads a file of tests/state, whose name begins with its version. Returns its size. */
static size_t state_file_read(const char *name, uint8_t kept[static STATE_FILE_MAX])
{
        const char *source = getenv("srcdir");
        char path[512];

        snprintf(path, sizeof(path), "%s/tests/state/%s", source ? source : ".", name);
        FILE *file = fopen(path, "re");
        ck_assert_msg(file, "%s: %s", path, strerror(errno));
        size_t kept_size = fread(kept, 1, STATE_FILE_MAX, file);
        ck_assert_uint_lt(kept_size, STATE_FILE_MAX);
        fclose(file);
        ck_assert_int_eq(kept[8], atoi(name));
        return kept_size;
}

/* Each field has a value of its own, so that none can pass for another. */
static struct worker fixed_workers[] = {
        {.index = 1,
         .generation = 6,
         .process.pid = 4001,
         .process.start = 5001,
         .process.heartbeat_pid = 4002,
         .process.heartbeat_start = 5002,
         .state = WORKER_STOPPING,
         .reason = REASON_MEMORY,
         .started_for = REASON_CRASH,
         .spawned_at = 101,
         .state_at = 102,
         .active_at = 103,
         .last_uptime = 77,
         .orders.quiet_at = 104,
         .orders.stop_at = 105,
         .orders.killed_at = 106,
         .heartbeat.seen = true,
         .heartbeat.written_usec = 1700000000000001,
         .heartbeat.changed_at = 107,
         .heartbeat.busy = 3,
         .heartbeat.concurrency = 25,
         .memory.over_threshold = true,
         .heartbeat.hung = true,
         .process.unproven = true,
         .process.forked = true,
         .orders.finishes_job = true},
        {.index = 2, .generation = 1, .process.pid = 4003, .state = WORKER_GONE},
        {.index = 4,
         .generation = 7,
         .process.pid = 4004,
         .process.start = 5004,
         .evidence.threads_witness = true,
         .orders.quiet = true,
         .orders.quiet_uncaught = true,
         .orders.unconfirmed = true,
         .orders.group_signaled = true,
         .process.awaits_go = true,
         .spawned_at = 900},
};
static struct worker *fixed_places[] = {&fixed_workers[0], &fixed_workers[1], &fixed_workers[2]};
static const struct fleet_settings fixed_settings[] = {
        {.name = (char *)"default",
         .traits = &sidekiq_traits,
         .active_process_count = 5,
         .active_process_max = 9,
         .launch_hash = 0x0123456789abcdef,
         .redis_url = (char *)"redis://user:secret@redis:6380/3"},
        {.name = (char *)"mail",
         .traits = &native_traits,
         .heartbeat = HEARTBEAT_FILE,
         .active_process_count = 1,
         .launch_hash = 8},
};
static const struct settings fixed_world_settings = {0};
static struct fleet *fixed_list[2];
static const struct world fixed_world = {
        .settings = &fixed_world_settings, .fleets = fixed_list, .n_fleets = ELEMENTSOF(fixed_list)};
static struct fleet fixed_fleets[] = {
        {.world = (struct world *)&fixed_world,
         .settings = &fixed_settings[0],
         .workers = fixed_places,
         .n_workers = ELEMENTSOF(fixed_places),
         .generation = 7,
         .newest_generation = 9,
         .launches = {{5, 1}, {7, 0x0123456789abcdef}, {8, 2}},
         .order = ORDER_STOP,
         .force = true,
         .scale = 3,
         .random = 99,
         .rollout = {.state = ROLLOUT_HALTED,
                     .total = 2,
                     .started_at = 201,
                     .progress_at = 202,
                     .failures = 4,
                     .failed_at = 203,
                     .elsewhere = true,
                     .error = "it failed",
                     .quoted.quoted_bytes = "no database",
                     .before = 4,
                     .returned = true,
                     .kept_since = 305},
         .crash = {.count = 6, .failed_at = 301, .next_at = 5000, .freed = 1},
         .crash_last = "it died",
         .crash_quoted.quoted_bytes = "boom\nbang",
         .churn = {.count = 8, .failed_at = 302, .next_at = 303, .freed = 9},
         .automatic_count = 6,
         .leak.past = {{.generation = 5, .bytes_per_day = 801}, {.generation = 4, .bytes_per_day = 802}},
         .preload = {.refused = "it cannot be forked",
                     .refused_generation = 3,
                     .failures = 10,
                     .slowest_fork = 701,
                     .template_bytes = 6003,
                     .quoted.quoted_bytes = "a socket"},
         .templates = {{.state = TEMPLATE_READY,
                        .generation = 6,
                        .pid = 4005,
                        .pid_start = 5005,
                        .serving_pid = 4006,
                        .serving_start = 5006,
                        .started_at = 401,
                        .state_at = 402,
                        .memory_bytes = 6001,
                        .fork = {.index = 3, .reason = REASON_MEMORY, .asked_at = 403}},
                       {.state = TEMPLATE_LOADING,
                        .generation = 7,
                        .pid = 4007,
                        .pid_start = 5007,
                        .started_at = 404,
                        .state_at = 405,
                        .memory_bytes = 6002}}},
        {.world = (struct world *)&fixed_world,
         .settings = &fixed_settings[1],
         .generation = 1,
         .newest_generation = 1,
         .launches = {{1, 8}}},
};
static struct fleet *fixed_list[] = {&fixed_fleets[0], &fixed_fleets[1]};

static void write_features(struct codec_writer *writer, const struct fleet *fleet, void *userdata _unused_)
{
        if (fleet->settings == &fixed_settings[0])
                codec_write_text(writer, "a feature");
}

static void pack_fixed_as(const struct world *world, const struct state_dead *of)
{
        const struct state_source source = {
                .world = world,
                .dead = of,
                .boot_id = BOOT,
                .identity = identity_of,
                .features = write_features,
                .now = 1000,
        };

        pack_source(&source);
}

static void pack_fixed(void)
{
        char fleet[] = "default", identity[] = "host:9:nonce";
        const struct state_dead fixed_dead = {
                .fleet = fleet,
                .worker = {.worker = fixed_workers[0], .identity = identity},
                .exit = {.known = true, .by_signal = true, .status = 9},
        };

        for (size_t i = 0; i < ELEMENTSOF(fixed_workers); i++)
                fixed_workers[i].fleet = fixed_list[0];
        pack_fixed_as(&fixed_world, &fixed_dead);
}

static void assert_bytes_are(const uint8_t *kept, size_t kept_size)
{
        ck_assert_uint_eq(size, kept_size);
        for (size_t i = 0; i < size; i++)
                ck_assert_msg(bytes[i] == kept[i], "byte %zu is another", i);
}

/* Other bytes are another version, which has another number and a file of its own in tests/state. */
TEST(the_bytes_are_those_of_this_version)
{
        uint8_t kept[STATE_FILE_MAX];
        size_t kept_size = state_file_read(STATE_FILE_WRITTEN, kept);

        pack_fixed();
        assert_bytes_are(kept, kept_size);
}

/* Whatever was lost or mistaken by reading would be missing or another in these bytes. */
TEST(what_this_version_has_written_and_read_is_written_again)
{
        uint8_t kept[STATE_FILE_MAX];
        size_t kept_size = state_file_read(STATE_FILE_WRITTEN, kept);
        struct fleet fleets[2] = {{.settings = NULL}}, *list[] = {&fleets[0], &fleets[1]};
        struct world world = {.settings = &fixed_world_settings, .fleets = list, .n_fleets = 2};
        struct worker *workers[2];

        ck_assert_int_eq(state_unpack(kept, kept_size, BOOT, 1000, &state), STATE_READ);
        ck_assert_uint_eq(state->n_fleets, 2);
        for (size_t i = 0; i < 2; i++) {
                const struct state_fleet *saved = &state->fleets[i];

                ck_assert_str_eq(saved->name, fixed_settings[i].name);
                ck_assert_uint_eq(saved->framework, fixed_settings[i].traits->id);
                ck_assert_uint_eq(saved->heartbeat, i == 0 ? HEARTBEAT_REDIS : HEARTBEAT_FILE);
                ck_assert_str_eq(saved->redis_url, i == 0 ? "redis://redis:6380/3" : "");
                ck_assert_uint_eq(saved->n_workers, i == 0 ? 2 : 0);
                ck_assert_uint_eq(saved->features.size, i == 0 ? 8 + strlen("a feature") : 0);
                fleets[i] = (struct fleet){
                        .world = &world, .settings = &fixed_settings[i], .n_workers = saved->n_workers};
                state_continue_fleet(&fleets[i], saved, 1000);
                memcpy(fleets[i].templates, saved->templates, sizeof(saved->templates));
        }
        for (size_t i = 0; i < 2; i++) {
                workers[i] = &state->fleets[0].workers[i].worker;
                workers[i]->fleet = &fleets[0];
        }
        ck_assert_str_eq(state->fleets[0].workers[0].identity, "host:1:nonce");
        ck_assert_mem_eq(state->fleets[0].features.bytes + 8, "a feature", 9);
        fleets[0].workers = workers;
        pack_fixed_as(&world, state->dead);
        assert_bytes_are(kept, kept_size);
}

TEST(names_what_is_wrong_with_the_bytes)
{
        pack_fixed();
        ck_assert_int_eq(outcome(bytes, size), STATE_READ);
        ck_assert_int_eq(outcome(bytes, 0), STATE_TRUNCATED);
        ck_assert_int_eq(outcome(NULL, 0), STATE_TRUNCATED);
        assert_truncation_is_found();
        bytes[8] = STATE_FILE_VERSION + 1;
        ck_assert_int_eq(outcome(bytes, size), STATE_NEWER);
        bytes[8] = 0;
        ck_assert_int_eq(outcome(bytes, size), STATE_GARBLED);
        ck_assert_int_eq(outcome((const uint8_t *)"something else", 14), STATE_GARBLED);
}

TEST(a_changed_byte_is_found)
{
        pack_fixed();
        assert_changes_are_found();
        bytes = realloc(bytes, size + 1);
        bytes[size] = 0;
        ck_assert_int_eq(outcome(bytes, size + 1), STATE_GARBLED);
}

/* A record that version 2 has extended, in bytes of version 1. */
struct grown {
        unsigned first, added;
        bool flag, added_flag;
        unsigned last;
};

static const struct codec_field grown_flag_fields[] = {
        CODEC_FIELD(NUMBER, struct grown, flag),
        {.kind = CODEC_NUMBER, .offset = offsetof(struct grown, added_flag), .size = 1, .max = 1, .since = 2},
};
static const struct record grown_flags = RECORD(grown_flag_fields);
static const struct codec_field grown_fields[] = {
        CODEC_FIELD(NUMBER, struct grown, first),
        {.kind = CODEC_NUMBER, .offset = offsetof(struct grown, added), .size = 4, .max = 9, .since = 2},
        {.kind = CODEC_FLAGS, .record = &grown_flags},
        CODEC_FIELD(NUMBER, struct grown, last),
};
static const struct record grown_record = RECORD(grown_fields);

TEST(fields_that_a_later_version_adds_are_skipped_in_bytes_of_an_earlier_one)
{
        const struct grown all = {.first = 1, .added = 2, .flag = true, .added_flag = true, .last = 3};
        struct codec_writer writer = {0};
        struct grown read = {0};

        codec_write(&writer, &grown_record, &all);
        struct codec_reader reader = {.at = writer.bytes, .left = writer.size, .version = 2};
        ck_assert_int_eq(codec_read(&reader, &grown_record, &read), 0);
        ck_assert(!reader.wrong && reader.left == 0 && read.added == 2 && read.added_flag && read.last == 3);
        ck_assert_uint_eq(codec_bytes_min(&grown_record), writer.size - sizeof(uint64_t));

        writer.size = 0;
        codec_write_number(&writer, all.first);
        codec_write_number(&writer, 1);
        codec_write_number(&writer, all.last);
        read = (struct grown){0};
        reader = (struct codec_reader){.at = writer.bytes, .left = writer.size, .version = 1};
        ck_assert_int_eq(codec_read(&reader, &grown_record, &read), 0);
        ck_assert(!reader.wrong && reader.left == 0);
        ck_assert(read.first == 1 && read.added == 0 && read.flag && !read.added_flag && read.last == 3);
        free(writer.bytes);
}

TEST(garbage_behind_a_good_checksum_does_no_harm)
{
        pack_fixed();
        assert_garbage_does_no_harm();
}

TEST(another_boot_ends_the_templates_and_keeps_what_was_refused)
{
        pack_fixed();
        const struct state_fleet *saved = unpack("another", t.now);

        for (size_t i = 0; i < TEMPLATES_MAX; i++)
                ck_assert_int_eq(saved->templates[i].state, TEMPLATE_NONE);
        ck_assert_str_eq(saved->preload.refused, "it cannot be forked");
        ck_assert_uint_eq(saved->preload.refused_generation, 3);
}

/* One place has one worker: else the whole state would be garbled. */
TEST(a_fork_that_has_come_forward_is_reported_once)
{
        struct template *template = &t.fleet->templates[0];

        test_preload(&t);
        t.fleet->generation = t.fleet->newest_generation = 7;
        t.fleet->launches[0].generation = 7;
        *template = (struct template){.fleet = t.fleet,
                                      .state = TEMPLATE_READY,
                                      .generation = 6,
                                      .pid = 4001,
                                      .pid_start = 5001,
                                      .serving_pid = 4002,
                                      .serving_start = 5002,
                                      .started_at = t.now - 11,
                                      .state_at = t.now - 12};
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
        const struct template bad[] = {
                {.state = _TEMPLATE_STATE_MAX, .generation = 7, .pid = 1},
                {.state = TEMPLATE_READY, .generation = 0, .pid = 1},
                {.state = TEMPLATE_READY, .generation = UINT64_MAX, .pid = 1},
                {.state = TEMPLATE_READY, .generation = 7, .pid = 0},
                {.state = TEMPLATE_READY, .generation = 7, .pid = -1},
                {.state = TEMPLATE_READY, .generation = 7, .pid = 1, .serving_pid = -1},
        };
        const struct template good = {.state = TEMPLATE_READY, .generation = 7, .pid = 1};

        for (size_t i = 0; i <= ELEMENTSOF(bad); i++) {
                t.fleet->templates[1] = i < ELEMENTSOF(bad) ? bad[i] : good;
                pack();
                ck_assert_int_eq(outcome(bytes, size), i < ELEMENTSOF(bad) ? STATE_GARBLED : STATE_READ);
        }
        t.fleet->templates[1] = (struct template){.state = TEMPLATE_NONE};
}

/* One that is longer than all that is left, and one with an end in it. */
TEST(a_text_that_cannot_be_is_wrong)
{
        struct codec_writer writer = {0};
        size_t length;

        codec_write_text(&writer, "no");
        for (unsigned i = 0; i < 3; i++) {
                struct codec_reader reader = {.at = writer.bytes, .left = writer.size};

                writer.bytes[0] = i == 1 ? 3 : 2;
                writer.bytes[8] = i == 2 ? 0 : 'n';
                (void)codec_read_text(&reader, CODEC_TEXT_MAX, &length);
                ck_assert_int_eq(reader.wrong, i > 0);
                ck_assert_uint_eq(length, i > 0 ? 0 : 2);
        }
        free(writer.bytes);
}

/* A worker as the state knows it: a wrapper, and the process under it that beats. */
static const struct worker known = {
        .index = 1,
        .generation = 1,
        .process.pid = 10,
        .process.start = 100,
        .process.heartbeat_pid = 11,
        .process.heartbeat_start = 110,
        .state = WORKER_ACTIVE,
        .heartbeat.seen = true,
        .heartbeat.written_usec = 5,
        .spawned_at = 1,
        .active_at = 1,
        .heartbeat.changed_at = 1,
};

static const struct {
        uint64_t start, heartbeat_start; /* of the processes that have these pids; 0: there is none */
        enum worker_state state;
        pid_t pid, heartbeat_pid;
} found[] = {
        {100, 110, WORKER_ACTIVE, 10, 11}, /* the same */
        {101, 111, WORKER_GONE, 0, 0},     /* others */
        {0, 0, WORKER_GONE, 0, 0},         /* none */
        {0, 110, WORKER_ACTIVE, 11, 11},   /* without its wrapper */
        {100, 0, WORKER_STARTING, 10, 0},  /* the wrapper has to boot again */
};

TEST_LOOP(adopts_the_same_processes_alone, ELEMENTSOF(found))
{
        const struct worker *worker =
                observe_adopted(t.fleet, &known, found[_i].start, found[_i].heartbeat_start, t.now);

        ck_assert_int_eq(worker->state, found[_i].state);
        ck_assert(!worker_fresh(worker, t.now));
        if (worker->state == WORKER_GONE)
                return;
        ck_assert_int_eq(worker->process.pid, found[_i].pid);
        ck_assert_uint_eq(worker->process.start, found[_i].pid == 10 ? 100 : 110);
        ck_assert_int_eq(worker->process.heartbeat_pid, found[_i].heartbeat_pid);
}

TEST(an_adopted_worker_is_judged_by_what_it_does_now)
{
        struct worker *worker = observe_adopted(t.fleet, &known, 100, 110, t.now);
        struct heartbeat heartbeat = {.sent_usec = 50, .concurrency = 5};

        t.now += USEC_PER_SEC;
        observe_heartbeat(worker, &heartbeat, t.now);
        ck_assert_msg(!worker_fresh(worker, t.now), "the first reading is only a mark");
        t.now += USEC_PER_SEC;
        heartbeat.sent_usec = 60;
        observe_heartbeat(worker, &heartbeat, t.now);
        ck_assert(worker_fresh(worker, t.now));
}

TEST(a_worker_out_of_reach_is_so_for_the_next_sqmgr)
{
        observe_remote(test_spawn_ready(&t));
        pack();
        ck_assert(unpack(BOOT, t.now)->workers[0].worker.process.remote);
}

TEST(what_is_left_with_a_job_has_it_still)
{
        struct worker *worker = test_spawn_ready(&t);

        worker->orders.finishes_job = true;
        pack();
        const struct worker *saved = &unpack(BOOT, t.now)->workers[0].worker;
        ck_assert(saved->orders.finishes_job);
        ck_assert_uint_eq(saved->heartbeat.busy, 1);
}

TEST(starts_wait_until_found_processes_are_known)
{
        t.fleet->held = true;
        ck_assert_uint_eq(test_plans(&t, ACTION_START, NULL), 0);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_ADOPTION);
        t.fleet->held = false;
        ck_assert_uint_eq(test_plans(&t, ACTION_START, NULL), 2);
}

TEST_MAIN("state", .each = {setup, teardown})
