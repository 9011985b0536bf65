/* SPDX-License-Identifier: MIT */
/* Delays the next try longer after each failure in a row, with full jitter. A crash loop then costs little,
 * and many hosts do not retry in step. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct backoff;

/* Records a failure at now, and delays the next try by a random time. The bound of that time is min, doubled
 * for each earlier failure in a row, but at most max. A next try that is already due later stays so. random:
 * the state of the generator, updated. */
void backoff_fail(struct backoff *backoff, usec_t min, usec_t max, uint64_t *random, usec_t now);

void backoff_reset(struct backoff *backoff);
