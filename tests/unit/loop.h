/* SPDX-License-Identifier: MIT */
/* A loop to wait in. */
#pragma once

#include "base/macro.h"
#include "unit.h"
#include <systemd/sd-event.h>

static sd_event *event;

/* Runs the loop until the condition holds; the test's own time limit ends it otherwise. */
#define run_until(condition)                                                                                 \
        do {                                                                                                 \
                while (!(condition))                                                                         \
                        ck_assert_int_ge(sd_event_run(event, 20 * USEC_PER_MSEC), 0);                        \
        } while (0)
