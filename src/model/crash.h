/* SPDX-License-Identifier: MIT */
/* What failed starts in a row mean for a fleet, and when they end. */
#pragma once

#include "base/usec.h"

struct fleet;

/* What the row of short lives means for the fleet. */
enum crash_state {
        CRASH_NONE,       /* there is none */
        CRASH_FAILING,    /* workers are missing, or it is not known yet whether a new one lives */
        CRASH_RECOVERING, /* all are there, and one was started since: it must live for a while */
        CRASH_SETTLED,    /* all are there, and none is to be started */
        _CRASH_STATE_MAX,
};

enum crash_state fleet_crash_state(const struct fleet *fleet, usec_t now);

/* When the row of short lives ends by that a worker which was started since has lived for long enough;
 * USEC_INFINITY: there is no such worker. */
usec_t fleet_recovered_at(const struct fleet *fleet);

/* The next start waits for it to pass: until then; 0: no start does. */
usec_t fleet_next_start_at(const struct fleet *fleet, usec_t now);

const char *crash_state_name(enum crash_state value);
