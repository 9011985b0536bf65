/* SPDX-License-Identifier: MIT */
/* Advice on leaks: whether the workers of a fleet grow without end, how soon they reach their limit, and
 * whether this release grows faster than one before it. Nothing is ever done for it. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct fleet;
struct worker;

/* Its memory was read. */
void leak_observe(struct worker *worker, uint64_t bytes, usec_t now);

/* Time has passed: judges what has come since. */
void leak_observe_time(struct fleet *fleet, usec_t now);

/* What they grow towards: memory_threshold, else memory_limit; 0: there is neither, or by memory_metric = pss
 * not known. */
uint64_t leak_limit_bytes(const struct fleet *fleet, const char **ret_name);

/* How long, in microseconds, until this one holds that much; USEC_INFINITY: it does not, or that is not
 * known. */
usec_t leak_reaches(const struct worker *worker);

/* How many times as fast as that generation; 0: none is known to have grown before. */
double leak_times(const struct fleet *fleet, uint64_t *ret_generation);

/* Of all its workers, in bytes; 0: they do not grow. */
uint64_t leak_bytes_per_hour(const struct fleet *fleet);

/* Whichever gets there first; NULL: none does. */
const struct worker *leak_first(const struct fleet *fleet);

#define LEAK_TEXT_MAX 320

/* "its workers grow by about 24M an hour: web/3 reaches memory_threshold (1G) in about 3h; this release grows
 * 4 times as fast as generation 7"; "" where they do not. Returns text. */
const char *leak_text(const struct fleet *fleet, char text[static LEAK_TEXT_MAX]);

/* "reaches memory_threshold in about 3h"; "" where it does not. */
const char *leak_worker_text(const struct worker *worker, char text[static LEAK_TEXT_MAX]);
