/* SPDX-License-Identifier: MIT */
/* The delay before a client connects to its server again. */
#pragma once

#include "base/macro.h"

/* Returns the delay after this many failures in a row, in microseconds: it doubles from min up to max. Half
 * of it is random, so that many clients do not reconnect at the same time. */
usec_t reconnect_delay(unsigned failures, usec_t min, usec_t max);
