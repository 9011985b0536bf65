/* SPDX-License-Identifier: MIT */
/* Records the jobs read from a worker's work list, and how many have ended. */
#pragma once

#include "model/worker.h"

/* The work list was read. oldest: run time of the oldest job in microseconds; 0: not known. */
void observe_jobs(struct worker *worker, const struct job_list *jobs, usec_t oldest, usec_t now);

/* The worker is about to be asked to exit for that reason. Reports the jobs that this cuts off, if any. */
void observe_cut_off(const struct worker *worker, enum reason reason, usec_t now);

/* A job has been running for longer than allowed: for runs, in microseconds. */
void observe_long_job(struct worker *worker, const struct job *job, usec_t runs);

/* Records how many jobs a worker has ended, for the trial of a release and for the latency of queues. Call
 * for each heartbeat, before observe_heartbeat() records its time. */
void observe_outcomes(struct worker *worker, const struct heartbeat *heartbeat, usec_t now);
