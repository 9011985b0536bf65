/* SPDX-License-Identifier: MIT */
/* Calls the optional features of the daemon; see the header. */
#include "daemon/runtime/subsystem.h"
#include "continuity/codec.h"
#include "continuity/state.h"

int subsystems_begin(struct subsystems *subsystems, const struct subsystem *const table[],
                     struct runtime *runtime)
{
        subsystems->table = table;
        for (; table[subsystems->n]; subsystems->n++) {
                assert(subsystems->n < SUBSYSTEMS_MAX);
                int r = table[subsystems->n]->begin(runtime, &subsystems->self[subsystems->n]);
                if (r < 0)
                        return r;
        }
        return 0;
}

void subsystems_problems(const void *userdata, const struct fleet *fleet, usec_t now,
                         struct problems *problems)
{
        const struct subsystems *subsystems = userdata;

        SUBSYSTEMS_CALL(subsystems, problems, fleet, now, problems);
}

int subsystems_status(const struct subsystems *subsystems, const struct fleet *fleet, json_t *object)
{
        int r = object ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && subsystems && i < subsystems->n; i++)
                if (subsystems->table[i]->status)
                        r = subsystems->table[i]->status(subsystems->self[i], fleet, object);
        return r;
}

void subsystems_pack(struct codec_writer *writer, const struct fleet *fleet, void *userdata)
{
        const struct subsystems *subsystems = userdata;

        for (size_t i = 0; i < subsystems->n; i++) {
                size_t before = writer->size;

                if (!subsystems->table[i]->pack)
                        continue;
                codec_write_text(writer, subsystems->table[i]->name);
                size_t size_at = codec_write_later(writer), begin = writer->size;
                subsystems->table[i]->pack(subsystems->self[i], fleet, writer);
                codec_fill_number(writer, size_at, writer->size - begin);
                if (writer->size == begin)
                        writer->size = before;
        }
}

void subsystems_unpack(const struct subsystems *subsystems, struct fleet *fleet,
                       const struct state_features *features)
{
        struct codec_reader reader = {.at = features->bytes, .left = features->size, .now = features->now};

        while (reader.left > 0 && !reader.wrong) {
                size_t length;
                const char *name = codec_read_text(&reader, CODEC_TEXT_MAX, &length);
                struct codec_reader part = codec_read_inner(&reader);

                for (size_t i = 0; !part.wrong && i < subsystems->n; i++)
                        if (subsystems->table[i]->unpack && strlen(subsystems->table[i]->name) == length &&
                            memcmp(subsystems->table[i]->name, name, length) == 0)
                                subsystems->table[i]->unpack(subsystems->self[i], fleet, &part);
        }
}

void subsystems_end(struct subsystems *subsystems)
{
        while (subsystems->n > 0) {
                size_t last = --subsystems->n;

                if (subsystems->table[last]->end)
                        subsystems->table[last]->end(subsystems->self[last]);
        }
}
