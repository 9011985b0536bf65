/* SPDX-License-Identifier: MIT */
/* When the daemon plans next: before the loop sleeps again, since something was observed, or when the timer
 * goes off. It holds the pass that is run then. */
#pragma once

#include "decide/pass.h"
#include <systemd/sd-event.h>

struct world;

/* Called from the loop. timer: the timer went off, and looks may be due. */
typedef void (*turn_fn)(bool timer, void *userdata);

struct turn {
        struct pass pass;
        turn_fn run;
        void *userdata;
        sd_event_source *soon;
        sd_event_source *timer;
};

/* The first is due at once. world and event must outlive it. Returns 0 or -errno; turn_close() is due in both
 * cases. */
int turn_open(struct turn *turn, sd_event *event, struct world *world, turn_fn run, void *userdata);
void turn_close(struct turn *turn);

/* Something was observed: plan before the loop sleeps again. */
void turn_arm(struct turn *turn);
/* The same, where what the state holds may have changed. */
void turn_changed(struct turn *turn);
/* The next look is due at once. */
void turn_look_now(struct turn *turn, usec_t now);
/* The timer goes off then, and no more until it is set again. */
void turn_wake_at(struct turn *turn, usec_t at);
