/* SPDX-License-Identifier: MIT */
/* Advice on memory leaks. Detects whether the workers of a fleet grow without end, and how soon they reach
 * their limit. Compares this release with an earlier one. sqmgr only reports; no action follows. */
#pragma once

#include "base/macro.h"

struct fleet;
struct worker;

/* Records a memory reading of the worker. */
void leak_observe(struct worker *worker, uint64_t bytes, usec_t now);

/* Judges the readings since the last call. Call regularly. */
void leak_observe_time(struct fleet *fleet, usec_t now);

/* Returns the time in microseconds until the worker reaches memory_threshold, else memory_limit.
 * USEC_INFINITY: never, or not known, as for a forked worker. */
usec_t leak_reaches(const struct worker *worker);

/* Returns the growth relative to the growth of the generation *ret_generation, for example 4.0. 0: no earlier
 * generation is known to grow; *ret_generation is then not set. */
double leak_times(const struct fleet *fleet, uint64_t *ret_generation);

/* Returns the typical growth of one worker in bytes per hour; 0: the workers do not grow. */
uint64_t leak_bytes_per_hour(const struct fleet *fleet);

/* Returns the worker that reaches the limit first; NULL: none does. */
const struct worker *leak_first(const struct fleet *fleet);

#define LEAK_TEXT_MAX 320

/* "workers grow by about 24M per hour each; web/3 reaches memory_threshold (1G) in about 3h; this release
 * leaks 4 times as fast as generation 7"; "" if the workers do not grow. Returns text. */
const char *leak_text(const struct fleet *fleet, char text[static LEAK_TEXT_MAX]);

/* "reaches memory_threshold in about 3h"; "" if the worker does not reach a limit. Returns text. */
const char *leak_worker_text(const struct worker *worker, char text[static LEAK_TEXT_MAX]);
