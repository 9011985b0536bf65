/* SPDX-License-Identifier: MIT */
/* Failed starts in a row: their meaning for a fleet, and when the row ends. */
#pragma once

#include "base/usec.h"

struct fleet;

/* The meaning of the failed starts in a row for a fleet. */
enum crash_state {
        CRASH_NONE,       /* no failed start */
        CRASH_FAILING,    /* workers are missing, or it is not known yet whether a new one stays alive */
        CRASH_RECOVERING, /* complete, with a worker started since the last failure: it must stay alive for a
                             while */
        CRASH_SETTLED,    /* complete, and no start is pending */
        _CRASH_STATE_MAX,
};

enum crash_state fleet_crash_state(const struct fleet *fleet, usec_t now);

/* Returns when the row of failed starts ends because a worker started since then has lived long enough;
 * USEC_INFINITY: there is no such worker. */
usec_t fleet_recovered_at(const struct fleet *fleet);

/* Returns the time until which the next start is delayed by the backoff; 0: no start is delayed. */
usec_t fleet_next_start_at(const struct fleet *fleet, usec_t now);

const char *crash_state_name(enum crash_state value);
