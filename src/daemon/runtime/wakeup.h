/* SPDX-License-Identifier: MIT */
/* When the daemon plans next: before the loop sleeps again, since something was observed, or when the timer
 * goes off. It holds the pass that is run then. */
#pragma once

#include "decide/pass.h"
#include <systemd/sd-event.h>

struct world;

/* Called from the loop. timer: the timer went off, and looks may be due. */
typedef void (*wakeup_fn)(bool timer, void *userdata);

struct wakeup {
        struct pass pass;
        wakeup_fn run;
        void *userdata;
        sd_event_source *soon;
        sd_event_source *timer;
};

/* The first is due at once. world and event must outlive it. Returns 0 or -errno; wakeup_close() is due in
 * both cases. */
int wakeup_open(struct wakeup *wakeup, sd_event *event, struct world *world, wakeup_fn run, void *userdata);
void wakeup_close(struct wakeup *wakeup);

/* Something was observed: plan before the loop sleeps again. */
void wakeup_arm(struct wakeup *wakeup);
/* The same, where what the state holds may have changed. */
void wakeup_changed(struct wakeup *wakeup);
/* The next look is due at once. */
void wakeup_poll_now(struct wakeup *wakeup, usec_t now);
/* The timer goes off then, and no more until it is set again. */
void wakeup_at(struct wakeup *wakeup, usec_t at);
