/* SPDX-License-Identifier: MIT */
/* Decodes the outcomes of the jobs of a process. Pure. Values that no process can write count as missing: no
 * heartbeat is doubted because of them. */
#pragma once

#include "base/macro.h"
#include "model/worker.h"

/* processed: all jobs, failed: those of them that failed. The outcomes are unknown unless both are numbers
 * and failed is the smaller one. */
struct worker_outcomes decode_outcomes(const struct field *processed, const struct field *failed);

/* Like decode_outcomes(), for a framework that counts successful jobs, and writes a count with its first job.
 */
struct worker_outcomes decode_outcomes_apart(const struct field *succeeded, const struct field *failed);

/* Adds the job class with the most failures, unless its name or its count is invalid. */
void decode_outcomes_class(const struct field *class, const struct field *failures,
                           struct worker_outcomes *outcomes);
