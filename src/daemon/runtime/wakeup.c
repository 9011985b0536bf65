/* SPDX-License-Identifier: MIT */
/* Schedules the passes of the daemon. */
#include "daemon/runtime/wakeup.h"
#include "io/timer.h"

/* Timers may be late by this much, which lets the machine sleep longer. */
#define TIMER_ACCURACY_USEC (5 * USEC_PER_MSEC)

static int on_soon(sd_event_source *source _unused_, void *userdata)
{
        struct wakeup *wakeup = userdata;

        wakeup->run(false, wakeup->userdata);
        return 0;
}

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct wakeup *wakeup = userdata;

        wakeup->run(true, wakeup->userdata);
        return 0;
}

int wakeup_open(struct wakeup *wakeup, sd_event *event, struct world *world, wakeup_fn run, void *userdata)
{
        *wakeup = (struct wakeup){.pass = {.world = world}, .run = run, .userdata = userdata};
        int r = sd_event_add_defer(event, &wakeup->soon, on_soon, wakeup);
        if (r < 0)
                return r;
        return sd_event_add_time(event, &wakeup->timer, CLOCK_MONOTONIC, 0, TIMER_ACCURACY_USEC, on_timer,
                                 wakeup);
}

void wakeup_close(struct wakeup *wakeup)
{
        wakeup->soon = sd_event_source_disable_unref(wakeup->soon);
        wakeup->timer = sd_event_source_disable_unref(wakeup->timer);
        plan_free(&wakeup->pass.plan);
}

void wakeup_arm(struct wakeup *wakeup)
{
        (void)sd_event_source_set_enabled(wakeup->soon, SD_EVENT_ONESHOT);
}

void wakeup_changed(struct wakeup *wakeup)
{
        wakeup->pass.serial++;
        wakeup->pass.unsaved = true;
        wakeup_arm(wakeup);
}

void wakeup_poll_now(struct wakeup *wakeup, usec_t now)
{
        wakeup->pass.poll_at = now;
        wakeup_arm(wakeup);
}

void wakeup_at(struct wakeup *wakeup, usec_t at)
{
        timer_set(wakeup->timer, at);
}
