/* SPDX-License-Identifier: MIT */
/* Calls the optional features of the daemon; see the header. */
#include "daemon/run/subsystem.h"

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

void subsystems_end(struct subsystems *subsystems)
{
        while (subsystems->n > 0) {
                size_t last = --subsystems->n;

                if (subsystems->table[last]->end)
                        subsystems->table[last]->end(subsystems->self[last]);
        }
}
