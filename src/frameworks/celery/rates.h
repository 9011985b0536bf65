/* SPDX-License-Identifier: MIT */
/* How many tasks a Celery worker begins per second, by the counters in its events. Pure: times are of the
 * monotonic clock. */
#pragma once

#include "base/usec.h"
#include <stdint.h>

/* The window of a rate has two parts of this length: the one before is complete, the current one is not. */
#define CELERY_RATE_PART_USEC (30 * USEC_PER_SEC)
/* A node with less data than this gives no rate. */
#define CELERY_RATE_MIN_USEC (10 * USEC_PER_SEC)

/* The tasks that one node has begun. Starts zeroed. */
struct celery_work {
        usec_t since[2];   /* start of the part before, and of the current one; 0: none */
        uint64_t begun[2]; /* tasks in these parts */
        usec_t begun_at;   /* the last counter that was higher than the one before; 0: none */
};

/* Folds a counter into work. before: the last counter of the node; any if work is zeroed. A lower counter
 * starts anew. A jump is cut: anybody who may publish can forge one. */
void celery_work_count(struct celery_work *work, uint64_t before, uint64_t processed, usec_t now);
/* Returns the tasks begun per second; a negative number: too little data. */
double celery_work_rate(const struct celery_work *work, usec_t now);
