/* SPDX-License-Identifier: MIT */
/* Waiting longer after each failure in a row, with full jitter, so that a crash loop costs little and a
 * thundering herd disperses. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct backoff;

/* Books a failure at now: the next try is due within min doubled for each earlier failure in a row, at most
 * max. random is the generator's state. A try already put off for longer stays so. */
void backoff_fail(struct backoff *backoff, usec_t min, usec_t max, uint64_t *random, usec_t now);

void backoff_reset(struct backoff *backoff);
