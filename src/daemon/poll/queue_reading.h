/* SPDX-License-Identifier: MIT */
/* Reads the queues of each Redis and compares them with their limits. All requests during a reading share the
 * reading. The results are stored in the links. */
#pragma once

#include "daemon/runtime/links.h"

/* Starts a reading unless one is in progress. */
void queue_reading_begin(struct links *links);
/* Like queue_reading_begin(), but only if there are limits to compare with. */
void queue_reading_poll(struct links *links);
/* Returns true once when all replies have arrived. Compares the results with the limits, which may add
 * events. */
bool queue_reading_tick(struct links *links);

/* Returns why the queues of this Redis are missing; the text is "" if they were read. */
const struct error_report *queue_reading_error(const struct link *link);
