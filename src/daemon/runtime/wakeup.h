/* SPDX-License-Identifier: MIT */
/* Schedules the passes of the daemon: before the loop sleeps again when something was observed, or when the
 * timer fires. Holds the pass. */
#pragma once

#include "decide/pass.h"
#include <systemd/sd-event.h>

struct world;

/* Called from the loop. timer: called by the timer, so polls may be due. */
typedef void (*wakeup_fn)(bool timer, void *userdata);

struct wakeup {
        struct pass pass;
        wakeup_fn run;
        void *userdata;
        sd_event_source *soon;
        sd_event_source *timer;
};

/* The first poll is due at once. world and event must outlive wakeup. Returns 0 or -errno; call
 * wakeup_close() in both cases. */
int wakeup_open(struct wakeup *wakeup, sd_event *event, struct world *world, wakeup_fn run, void *userdata);
/* Frees the sources of the loop and the plan. */
void wakeup_close(struct wakeup *wakeup);

/* Requests a pass before the loop sleeps again. Call when something was observed. */
void wakeup_arm(struct wakeup *wakeup);
/* Like wakeup_arm(), and requests writing of the state. Call when the content of the state may have
 * changed. */
void wakeup_changed(struct wakeup *wakeup);
/* Makes the next poll due at once. */
void wakeup_poll_now(struct wakeup *wakeup, usec_t now);
/* Sets the timer, which fires once. */
void wakeup_at(struct wakeup *wakeup, usec_t at);
