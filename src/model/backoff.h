/* SPDX-License-Identifier: MIT */
/* Delays the next try longer after each failure in a row, with full jitter. A crash loop then costs little,
 * and many hosts do not retry in step. */
#pragma once

#include "base/macro.h"

struct backoff;

/* The bounds of the first and of the longest delays: a fault that ends soon costs little time, and one that
 * stays costs the machine one start of an application a minute. */
#define BACKOFF_MIN_USEC USEC_PER_SEC
#define BACKOFF_MAX_USEC USEC_PER_MIN

/* Records a failure at now, and delays the next try by a random time. The bound of that time is
 * BACKOFF_MIN_USEC, doubled for each earlier failure in a row, but at most BACKOFF_MAX_USEC. A next try that
 * is already due later stays so. random: the state of the generator, updated. */
void backoff_fail(struct backoff *backoff, uint64_t *random, usec_t now);

void backoff_reset(struct backoff *backoff);
