/* SPDX-License-Identifier: MIT */
/* Fuzzes a record of passes. The first byte says whether the bytes come as they are, or as the passes of a
 * segment with good settings and a good checksum. */
#include "base/hash.h"
#include "frameworks/table.h"
#include "fuzz.h"
#include "model/fleet.h"
#include "model/world.h"
#include "record/replay_rules.h"
#include "settings/value.h"

#define AS_THEY_ARE 0xff

static const struct settings_surroundings surroundings = {.frameworks = framework_traits};

static void write_begin(struct codec_writer *writer)
{
        static char names[][8] = {"web", "mail"};
        struct fleet_settings fleets[ELEMENTSOF(names)] = {0}, *list[ELEMENTSOF(names)];
        const struct settings settings = {
                .check_interval = 5 * USEC_PER_SEC, .fleets = list, .n_fleets = ELEMENTSOF(list)};

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                fleets[i] = (struct fleet_settings){
                        .name = names[i],
                        .traits = framework_traits[i],
                        .active_process_count = 2,
                        .ready_after = 10 * USEC_PER_SEC,
                        .memory_threshold = (uint64_t)1 << 28,
                };
                list[i] = &fleets[i];
        }
        record_write_begin(writer, &settings);
}

static void make_segment(const uint8_t *passes, size_t size, struct codec_writer *ret)
{
        uint8_t *space = codec_write_space(ret, RECORD_HEADER_SIZE);

        fuzz_check(space);
        write_begin(ret);
        space = codec_write_space(ret, size);
        fuzz_check(space && !ret->failed);
        if (size > 0)
                memcpy(space, passes, size);
        const struct record_header header = {
                .slot_bytes = ret->size,
                .sequence = 1,
                .used = ret->size - RECORD_HEADER_SIZE,
                .checksum = hash_bytes(HASH_INIT, ret->bytes + RECORD_HEADER_SIZE,
                                       ret->size - RECORD_HEADER_SIZE),
        };
        record_header_write(&header, ret->bytes);
}

static void check_decision(const struct replay_step *step, const struct decision *decision)
{
        for (size_t i = 0; i < decision->n; i++) {
                fuzz_check(decision->actions[i].fleet < step->world->n_fleets);
                fuzz_check(decision->actions[i].slot <= TEMPLATES_MAX);
        }
}

static void run(const uint8_t *bytes, size_t size, const char *set)
{
        struct replay *replay = NULL;
        struct replay_step step;
        char why[REPLAY_WHY_MAX] = "";

        if (replay_new(bytes, size, &surroundings, &replay, why) < 0) {
                fuzz_check(why[0] != '\0');
                return;
        }
        fuzz_check(!set || replay_set(replay, set, why) == 0);
        int r;
        while ((r = replay_next(replay, &step, why)) > 0) {
                check_decision(&step, step.recorded);
                check_decision(&step, step.replayed);
                WORLD_FOREACH_FLEET(step.world, fleet)
                        for (size_t i = 1; i < fleet->n_workers; i++)
                                fuzz_check(fleet->workers[i - 1]->index < fleet->workers[i]->index);
        }
        fuzz_check(r == 0 || why[0] != '\0');
        replay_free(replay);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};
        struct codec_writer segment = {0};

        if (size == 0 || input_byte(&input) == AS_THEY_ARE) {
                run(input.at, input.left, NULL);
                return 0;
        }
        make_segment(input.at, input.left, &segment);
        run(segment.bytes, segment.size, data[0] & 1 ? "memory_threshold=100M" : NULL);
        free(segment.bytes);
        return 0;
}
