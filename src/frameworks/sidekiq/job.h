/* SPDX-License-Identifier: MIT */
/* Jobs in the format of Sidekiq's queues and work lists. */
#pragma once

#include "model/job.h"

/* Decodes an entry of a work list, for job_list_decode(). */
int sidekiq_job_decode(struct job *job);

/* Decodes `enqueued_at` of a job's JSON, by the clock of the client that enqueued the job: seconds up to
 * 7, milliseconds from 8.0. Returns false if the time is missing, or the job exceeds the bounds of
 * decode_job(): when it was enqueued is then unknown. class: the job's class as in Sidekiq's metrics,
 * truncated; "" if unknown. */
bool sidekiq_job_head(const char *payload, size_t len, uint64_t *ret_usec, char class[static JOB_CLASS_MAX]);

/* Decodes `queue` of a job's JSON. Returns false if it is missing or does not fit, or the job exceeds the
 * bounds of decode_job(). */
bool sidekiq_job_queue(const char *payload, size_t len, char *queue, size_t size);

/* Returns the payload with the reason why the job was given up, as stored in Sidekiq's dead set. Sidekiq's
 * web page shows error_class and error_message. now_usec: wall clock. The caller frees the result; NULL:
 * out of memory. */
char *sidekiq_job_dead_payload(const struct job *job, const char *error_class, const char *error_message,
                               uint64_t now_usec);
