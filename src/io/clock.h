/* SPDX-License-Identifier: MIT */
/* The clocks, in microseconds. */
#pragma once

#include "base/usec.h"
#include <time.h>

/* clock: CLOCK_MONOTONIC, CLOCK_BOOTTIME or CLOCK_REALTIME; none of these can fail. */
usec_t clock_now(clockid_t clock);
