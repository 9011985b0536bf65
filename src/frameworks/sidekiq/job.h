/* SPDX-License-Identifier: MIT */
/* Jobs as Sidekiq writes them: in its queues, and in the work lists of its processes. */
#pragma once

#include "model/job.h"

/* Decodes an entry of a work list: for job_list_decode(). */
int sidekiq_job_decode(struct job *job);

/* When a job was put in its queue, by the clock of who did it: `enqueued_at` of the JSON that is the job, in
 * seconds up to 7, in milliseconds from 8.0. Returns false where that is not told. class: of the job, cut, as
 * Sidekiq's metrics call it; "" where that is not told. */
bool sidekiq_job_head(const char *payload, size_t len, uint64_t *ret_usec, char class[static JOB_CLASS_MAX]);

/* The payload with the reason for which the job was given up, as Sidekiq's dead set has it; error_class and
 * error_message are what its web page shows. now_usec: by the wall clock. To be freed; NULL: memory is short.
 */
char *sidekiq_job_dead_payload(const struct job *job, const char *error_class, const char *error_message,
                               uint64_t now_usec);
