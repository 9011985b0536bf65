/* SPDX-License-Identifier: MIT */
/* Delays the next try longer after each failure in a row, with full jitter. A crash loop then costs little,
 * and many hosts do not retry in step. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct backoff;

/* Records a failure at now. The next try is due after a random delay. Its bound is min, doubled for each
 * earlier failure in a row, but at most max. An already later next try remains. random: the generator's
 * state, updated. */
void backoff_fail(struct backoff *backoff, usec_t min, usec_t max, uint64_t *random, usec_t now);

void backoff_reset(struct backoff *backoff);
