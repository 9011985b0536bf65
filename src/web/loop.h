/* SPDX-License-Identifier: MIT */
/* Clock and timers of the event loop. */
#pragma once

#include "base/macro.h"
#include <systemd/sd-event.h>

/* The time at which the current iteration of the event loop began. */
static inline usec_t loop_now(sd_event *event, clockid_t clock)
{
        uint64_t now = 0;

        (void)sd_event_now(event, clock, &now);
        return now;
}

/* Arms the timer to fire once, usec from now. */
static inline void loop_arm(sd_event_source *timer, usec_t usec)
{
        (void)sd_event_source_set_time_relative(timer, usec);
        (void)sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}
