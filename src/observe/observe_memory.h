/* SPDX-License-Identifier: MIT */
/* Folds readings of the memory of a worker into the model. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct worker;

/* A replacement that breaches the threshold within this time of its first heartbeat is churn. */
#define CHURN_USEC (10 * USEC_PER_MIN)

/* One regular sample, not one of the fast looks. */
void observe_memory(struct worker *worker, uint64_t bytes, usec_t now);

/* What it holds and shares with no other process. */
void observe_own_memory(struct worker *worker, uint64_t bytes);

/* Growth is counted from now: the worker runs nothing, has sent its first heartbeat, or was adopted. */
void observe_memory_mark(struct worker *worker, uint64_t bytes, usec_t now);
