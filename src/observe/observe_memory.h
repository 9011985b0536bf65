/* SPDX-License-Identifier: MIT */
/* Records memory readings of a worker. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct worker;

/* A replacement that breaches the threshold within this time of its first heartbeat is churn. */
#define CHURN_USEC (10 * USEC_PER_MIN)

/* Records one sample of a regular poll, not of a fast poll. */
void observe_memory(struct worker *worker, uint64_t bytes, usec_t now);

/* As observe_memory(), but compares the limits with share, the proportional share of a forked worker. */
void observe_shared_memory(struct worker *worker, uint64_t bytes, uint64_t share, usec_t now);

/* Records the memory that the worker shares with no other process. */
void observe_own_memory(struct worker *worker, uint64_t bytes);

/* Measures growth from now on: the worker runs no job, has sent its first heartbeat, or was adopted. */
void observe_memory_mark(struct worker *worker, uint64_t bytes, usec_t now);
