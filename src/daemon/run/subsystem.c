/* SPDX-License-Identifier: MIT */
/* Calls the optional features of the daemon; see the header. */
#include "daemon/run/subsystem.h"
#include "continuity/record.h"
#include "continuity/state.h"
#include <string.h>

int subsystems_begin(struct subsystems *subsystems, const struct subsystem *const table[],
                     struct keeper *keeper)
{
        subsystems->table = table;
        for (; table[subsystems->n]; subsystems->n++) {
                assert(subsystems->n < SUBSYSTEMS_MAX);
                int r = table[subsystems->n]->begin(keeper, &subsystems->self[subsystems->n]);
                if (r < 0)
                        return r;
        }
        return 0;
}

void *subsystems_find(const struct subsystems *subsystems, const struct subsystem *subsystem)
{
        for (size_t i = 0; i < subsystems->n; i++)
                if (subsystems->table[i] == subsystem)
                        return subsystems->self[i];
        return NULL;
}

void subsystems_join(const struct subsystems *subsystems)
{
        for (size_t i = 0; i < subsystems->n; i++)
                if (subsystems->table[i]->join)
                        subsystems->table[i]->join(subsystems->self[i]);
}

void subsystems_poll(const struct subsystems *subsystems, usec_t now)
{
        for (size_t i = 0; i < subsystems->n; i++)
                if (subsystems->table[i]->poll)
                        subsystems->table[i]->poll(subsystems->self[i], now);
}

void subsystems_observe(const struct subsystems *subsystems, usec_t now)
{
        for (size_t i = 0; i < subsystems->n; i++)
                if (subsystems->table[i]->observe)
                        subsystems->table[i]->observe(subsystems->self[i], now);
}

void subsystems_tick(const struct subsystems *subsystems, usec_t now)
{
        for (size_t i = 0; i < subsystems->n; i++)
                if (subsystems->table[i]->tick)
                        subsystems->table[i]->tick(subsystems->self[i], now);
}

void subsystems_answer(const struct subsystems *subsystems, usec_t now)
{
        for (size_t i = 0; i < subsystems->n; i++)
                if (subsystems->table[i]->answer)
                        subsystems->table[i]->answer(subsystems->self[i], now);
}

void subsystems_metrics(const struct subsystems *subsystems, const struct metrics *metrics)
{
        for (size_t i = 0; i < subsystems->n; i++)
                if (subsystems->table[i]->metrics)
                        subsystems->table[i]->metrics(subsystems->self[i], metrics);
}

void subsystems_diagnose(const struct subsystems *subsystems, const struct fleet *fleet,
                         struct findings *findings)
{
        for (size_t i = 0; i < subsystems->n; i++)
                if (subsystems->table[i]->diagnose)
                        subsystems->table[i]->diagnose(subsystems->self[i], fleet, findings);
}

void subsystems_pack(struct record_writer *writer, const struct fleet *fleet, void *userdata)
{
        const struct subsystems *subsystems = userdata;

        for (size_t i = 0; i < subsystems->n; i++) {
                size_t before = writer->size;

                if (!subsystems->table[i]->pack)
                        continue;
                record_write_text(writer, subsystems->table[i]->name);
                size_t begun = record_write_begin(writer);
                subsystems->table[i]->pack(subsystems->self[i], fleet, writer);
                if (writer->size == begun)
                        writer->size = before;
                else
                        record_write_end(writer, begun);
        }
}

void subsystems_unpack(const struct subsystems *subsystems, struct fleet *fleet,
                       const struct state_features *features)
{
        struct record_reader reader = {.at = features->bytes, .left = features->size, .now = features->now};

        while (reader.left > 0 && !reader.wrong) {
                size_t length;
                const char *name = record_read_text(&reader, RECORD_TEXT_MAX, &length);
                struct record_reader part = {.now = features->now};

                part.at = record_read_bytes(&reader, &part.left);
                for (size_t i = 0; part.at && i < subsystems->n; i++)
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
