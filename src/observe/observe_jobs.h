/* SPDX-License-Identifier: MIT */
/* Folds what was read of the jobs of a worker into the model. */
#pragma once

#include "model/worker.h"

/* Its work list was read: it holds these jobs, and the oldest has been running for so long, in microseconds;
 * 0: that is not told. */
void observe_jobs(struct worker *worker, const struct job_list *jobs, usec_t oldest, usec_t now);

/* It is about to be told to exit, for that reason: where that cuts off jobs of it, it is told which. */
void observe_cut_off(const struct worker *worker, enum reason reason, usec_t now);

/* One of its jobs has been running for so long, more than it may. dumped: Sidekiq was asked what it is at. */
void observe_long_job(struct worker *worker, const struct job *job, usec_t runs, bool dumped);
