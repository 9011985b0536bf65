/* SPDX-License-Identifier: MIT */
/* Clocks, in microseconds. */
#pragma once

#include "base/macro.h"
#include <time.h>

/* Returns the time of CLOCK_MONOTONIC, CLOCK_BOOTTIME or CLOCK_REALTIME. Cannot fail for these clocks. */
usec_t clock_now(clockid_t clock);
