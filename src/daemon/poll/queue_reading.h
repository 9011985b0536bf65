/* SPDX-License-Identifier: MIT */
/* Reads the queues of each Redis and compares them with their limits. All requests during a reading share the
 * reading. The results are stored in the links. */
#pragma once

#include "daemon/runtime/runtime.h"

#define SERVED_BYTES_MAX 16384

/* Names of queues, each once: each name ends with a NUL, the list with two. Starts zeroed. */
struct served_queues {
        char text[SERVED_BYTES_MAX];
        size_t used, n;
};

/* Starts a reading unless one is in progress. */
void queue_reading_begin(struct runtime *runtime);
/* Like queue_reading_begin(), but only if there are limits to compare with. */
void queue_reading_poll(struct runtime *runtime);
/* Returns true once when all replies have arrived. Compares the results with the limits, which may add
 * events. */
bool queue_reading_tick(struct runtime *runtime);

/* Returns why the queues of this Redis are missing; the text is "" if they were read. */
const struct error_report *queue_reading_error(const struct link *link);

/* Returns the queues that the worker serves, a list as above; NULL: unknown. */
const char *served_by(const struct worker *worker);
/* Add a name, the names of a list, or what the active workers of a fleet serve. Return false if there is no
 * room for all of them, or more than QUEUES_NAMED_MAX. */
bool served_add_name(struct served_queues *served, const char *name);
bool served_add(struct served_queues *served, const char *list);
bool served_add_fleet(struct served_queues *served, const struct fleet *fleet);
/* Estimates the latencies of queues as read now, if the framework of the link keeps no time of a job. queues:
 * NULL: not read. */
void served_estimate(const struct link *link, struct queues *queues, usec_t now);
