/* SPDX-License-Identifier: MIT */
/* When the daemon plans next. */
#include "daemon/runtime/turn.h"

/* Timers may be late by this much, so that the machine may sleep on. */
#define TIMER_ACCURACY_USEC (5 * USEC_PER_MSEC)

static int on_soon(sd_event_source *source _unused_, void *userdata)
{
        struct turn *turn = userdata;

        turn->run(false, turn->userdata);
        return 0;
}

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct turn *turn = userdata;

        turn->run(true, turn->userdata);
        return 0;
}

int turn_open(struct turn *turn, sd_event *event, struct world *world, turn_fn run, void *userdata)
{
        *turn = (struct turn){.pass = {.world = world}, .run = run, .userdata = userdata};
        int r = sd_event_add_defer(event, &turn->soon, on_soon, turn);
        if (r < 0)
                return r;
        return sd_event_add_time(event, &turn->timer, CLOCK_MONOTONIC, 0, TIMER_ACCURACY_USEC, on_timer,
                                 turn);
}

void turn_close(struct turn *turn)
{
        turn->soon = sd_event_source_disable_unref(turn->soon);
        turn->timer = sd_event_source_disable_unref(turn->timer);
        plan_free(&turn->pass.plan);
}

void turn_arm(struct turn *turn)
{
        (void)sd_event_source_set_enabled(turn->soon, SD_EVENT_ONESHOT);
}

void turn_changed(struct turn *turn)
{
        turn->pass.serial++;
        turn->pass.unsaved = true;
        turn_arm(turn);
}

void turn_look_now(struct turn *turn, usec_t now)
{
        turn->pass.look_at = now;
        turn_arm(turn);
}

void turn_wake_at(struct turn *turn, usec_t at)
{
        (void)sd_event_source_set_time(turn->timer, at);
        (void)sd_event_source_set_enabled(turn->timer, SD_EVENT_ONESHOT);
}
