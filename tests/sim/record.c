/* SPDX-License-Identifier: MIT */
/* Records and replays the simulated passes; see the header. */
#include "record.h"
#include "base/hash.h"
#include "frameworks/table.h"
#include "model/world.h"
#include "record/replay_rules.h"
#include "settings/value.h"
#include "sim.h"
#include <stdio.h>
#include <string.h>

struct record_sim {
        const char *file;
        struct world *world;         /* the recorded one */
        struct codec_writer begin;   /* the settings, as the segment begins with them */
        struct codec_writer segment; /* with space for the header in front */
        struct recorded_world recorded;
        struct codec_writer longest;
};

static void write_header(struct codec_writer *segment)
{
        struct record_header header = {
                .slot_bytes = segment->size,
                .sequence = 1,
                .used = segment->size - RECORD_HEADER_SIZE,
                .checksum = hash_bytes(HASH_INIT, segment->bytes + RECORD_HEADER_SIZE,
                                       segment->size - RECORD_HEADER_SIZE),
        };

        record_header_write(&header, segment->bytes);
}

static void check_step(struct sim *sim, const struct replay_step *step)
{
        if (!step->same)
                violate(sim, "REPLAY", "the pass at %.3f s decides %zu actions, and decided %zu",
                        (double)(step->now - sim->begun_at) / 1e6, step->replayed->n, step->recorded->n);
}

static void replay(struct sim *sim, const struct codec_writer *segment)
{
        const struct settings_surroundings surroundings = {.frameworks = framework_traits};
        _cleanup_(replay_free_pointer) struct replay *replay = NULL;
        struct replay_step step;
        char why[REPLAY_WHY_MAX] = "out of memory";

        int r = replay_new(segment->bytes, segment->size, &surroundings, &replay, why);
        while (r >= 0 && (r = replay_next(replay, &step, why)) > 0)
                check_step(sim, &step);
        if (r < 0)
                violate(sim, "REPLAY", "the record cannot be read: %s", why);
}

static void end_segment(struct sim *sim)
{
        struct record_sim *record = sim->record;

        if (record->segment.size > RECORD_HEADER_SIZE) {
                write_header(&record->segment);
                replay(sim, &record->segment);
        }
        if (record->segment.size > record->longest.size) {
                const struct codec_writer longest = record->longest;

                record->longest = record->segment;
                record->segment = longest;
        }
        record->segment.size = 0;
        recorded_world_free(&record->recorded);
}

static void begin_segment(struct sim *sim, const struct codec_writer *begin)
{
        struct record_sim *record = sim->record;
        const struct world *world = sim->shell.world;
        uint8_t *space = codec_write_space(&record->segment, RECORD_HEADER_SIZE + begin->size);

        if (!space || recorded_world_init(&record->recorded, world->n_fleets) < 0)
                abort();
        memcpy(space + RECORD_HEADER_SIZE, begin->bytes, begin->size);
}

void record_planning(struct sim *sim, usec_t now)
{
        struct record_sim *record = sim->record;
        struct codec_writer begin = {0};

        record_write_begin(&begin, sim->shell.world->settings);
        if (begin.failed)
                abort();
        if (record->world != sim->shell.world || record->begin.size != begin.size ||
            memcmp(record->begin.bytes, begin.bytes, begin.size) != 0 ||
            record->recorded.n_fleets != sim->shell.world->n_fleets) {
                end_segment(sim);
                begin_segment(sim, &begin);
                record->world = sim->shell.world;
        }
        free(record->begin.bytes);
        record->begin = begin;
        if (record_write_state(&record->segment, &record->recorded, sim->shell.world, now) < 0)
                abort();
}

void record_planned(struct sim *sim, const struct plan *plan, usec_t now)
{
        record_write_decision(&sim->record->segment, plan, sim->shell.world, now);
        if (sim->record->segment.failed)
                abort();
}

int record_open(struct sim *sim, const char *file)
{
        sim->record = calloc(1, sizeof(*sim->record));
        if (!sim->record)
                return -ENOMEM;
        sim->record->file = file;
        return 0;
}

void record_close(struct sim *sim)
{
        struct record_sim *record = sim->record;
        FILE *out = NULL;

        end_segment(sim);
        if (record->file)
                out = fopen(record->file, "we");
        if (record->file && (!out || fwrite(record->longest.bytes, record->longest.size, 1, out) != 1))
                abort();
        if (out && fclose(out) != 0)
                abort();
        free(record->begin.bytes);
        free(record->segment.bytes);
        free(record->longest.bytes);
        free(record);
        sim->record = NULL;
}
