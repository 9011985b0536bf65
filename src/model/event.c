/* SPDX-License-Identifier: MIT */
/* The table of the event kinds. */
#include "model/event.h"
#include <syslog.h>

const struct event_kind_facts event_kinds[_EVENT_MAX] = {
#define EVENT_KIND(id, kind, name, level, end) [kind] = {id, name, LOG_##level, end},
        EVENT_KINDS(EVENT_KIND)
#undef EVENT_KIND
};

int event_level(const struct event *event)
{
        int level = event_kinds[event->kind].level;

        return event->excused ? MAX(level, LOG_WARNING) : level;
}

int event_alert_level(const struct event *event)
{
        int level = event_level(event);

        for (enum event_kind trouble = 0; trouble < _EVENT_MAX; trouble++)
                if (event_kinds[trouble].end == event->kind)
                        level = MIN(level, event_kinds[trouble].level);
        return level;
}
