/* SPDX-License-Identifier: MIT */
/* Times of the loop. */
#pragma once

#include "base/usec.h"
#include <systemd/sd-event.h>

/* When this turn of the loop began. */
static inline usec_t loop_now(sd_event *event, clockid_t clock)
{
        uint64_t now = 0;

        (void)sd_event_now(event, clock, &now);
        return now;
}

/* Has the timer expire once, in so much time from now on. */
static inline void loop_arm(sd_event_source *timer, usec_t usec)
{
        (void)sd_event_source_set_time_relative(timer, usec);
        (void)sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}
