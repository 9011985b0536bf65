/* SPDX-License-Identifier: MIT */
/* The table of the kinds of events, and the events that wait to be told. */
#include "model/event.h"
#include "model/world.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

/* Events pile up only between two turns of the loop; past this something is wrong, and memory is worth more.
 */
#define EVENT_TEXT_MAX 2304
#define EVENTS_MAX     10000

static const struct {
        const char *message_id, *name;
        int level;
        enum event_kind end;
} event_kinds[] = {
#define EVENT_KIND(id, kind, name, level, end) [kind] = {id, name, LOG_##level, end},
        EVENT_KINDS(EVENT_KIND)
#undef EVENT_KIND
};

const char *event_kind_name(enum event_kind kind)
{
        return event_kinds[kind].name;
}

int event_kind_level(enum event_kind kind)
{
        return event_kinds[kind].level;
}

bool event_kind_ends(enum event_kind kind, enum event_kind trouble)
{
        return event_kinds[trouble].end == kind;
}

int event_kind_alert_level(enum event_kind kind)
{
        int level = event_kinds[kind].level;

        for (enum event_kind trouble = 0; trouble < _EVENT_MAX; trouble++)
                if (event_kind_ends(kind, trouble))
                        level = MIN(level, event_kinds[trouble].level);
        return level;
}

const char *event_kind_message_id(enum event_kind kind)
{
        return event_kinds[kind].message_id;
}

static void count_event(struct world *world, enum event_kind kind, const struct fleet *fleet)
{
        if (!fleet) {
                world->event_totals[kind]++;
                return;
        }
        for (size_t i = 0; i < world->n_fleets; i++)
                if (world->fleets[i] == fleet)
                        world->fleets[i]->totals.events[kind]++;
}

void world_event(struct world *world, enum event_kind kind, const struct fleet *fleet,
                 const struct worker *worker, const char *format, ...)
{
        char text[EVENT_TEXT_MAX], *copy;
        va_list arguments;

        count_event(world, kind, fleet);
        if (world->n_events >= EVENTS_MAX)
                return;
        if (world->n_events == world->events_allocated) {
                size_t allocated = MAX((size_t)16, 2 * world->events_allocated);
                struct event *events = realloc(world->events, allocated * sizeof(*events));

                if (!events)
                        return;
                world->events = events;
                world->events_allocated = allocated;
        }
        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        copy = strdup(text);
        if (!copy)
                return;
        struct event *event = &world->events[world->n_events++];
        *event = (struct event){
                .kind = kind,
                .fleet = fleet,
                .generation = fleet ? fleet->generation : 0,
                .text = copy,
        };
        if (world->by)
                event->by = *world->by;
        if (worker) {
                event->generation = worker->generation;
                event->index = worker->index;
                event->pid = worker_pid(worker);
                event->reason = worker->reason;
        }
}

void world_events_clear(struct world *world)
{
        for (size_t i = 0; i < world->n_events; i++)
                free(world->events[i].text);
        /* A burst is rare: what it took goes back. */
        free(world->events);
        world->events = NULL;
        world->n_events = world->events_allocated = 0;
}
