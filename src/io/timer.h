/* SPDX-License-Identifier: MIT */
/* Timers of the event loop that fire once. */
#pragma once

#include "base/macro.h"
#include <systemd/sd-event.h>

/* Adds a timer that is off until timer_set(). Returns 0 or -errno. */
static inline int timer_new(sd_event *event, sd_event_time_handler_t fired, void *userdata,
                            sd_event_source **ret)
{
        int r = sd_event_add_time(event, ret, CLOCK_MONOTONIC, USEC_INFINITY, 0, fired, userdata);

        return MIN(r, 0);
}

/* Has the timer fire once, at that time. Neither call fails for an event source of this process. */
static inline void timer_set(sd_event_source *timer, usec_t at)
{
        (void)sd_event_source_set_time(timer, at);
        (void)sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}
