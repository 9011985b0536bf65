/* SPDX-License-Identifier: MIT */
/* The table of the event kinds. */
#include "model/event.h"
#include <syslog.h>

const struct event_kind_facts event_kinds[_EVENT_MAX] = {
#define EVENT_KIND(id, kind, name, level, end) [kind] = {id, name, LOG_##level, end},
        EVENT_KINDS(EVENT_KIND)
#undef EVENT_KIND
};

int event_kind_alert_level(enum event_kind kind)
{
        int level = event_kinds[kind].level;

        for (enum event_kind trouble = 0; trouble < _EVENT_MAX; trouble++)
                if (event_kinds[trouble].end == kind)
                        level = MIN(level, event_kinds[trouble].level);
        return level;
}
