/* SPDX-License-Identifier: MIT */
/* Clocks and delays, in microseconds. */
#pragma once

#include "base/macro.h"
#include <time.h>

/* Returns the time of CLOCK_MONOTONIC, CLOCK_BOOTTIME or CLOCK_REALTIME. Cannot fail for these clocks. */
usec_t clock_now(clockid_t clock);

/* Returns the delay before a client connects again after this many failures in a row: it doubles from min up
 * to max. Half of it is random, so that many clients do not reconnect at the same time. */
usec_t reconnect_delay(unsigned failures, usec_t min, usec_t max);
