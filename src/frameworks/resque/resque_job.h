/* SPDX-License-Identifier: MIT */
/* Jobs as Resque's workers tell of those that they run. */
#pragma once

struct job;

/* Decodes what stands at `resque:worker:IDENTITY`: for job_list_decode(). A job of ActiveJob's is told by its
 * own class and id; no other has an id, and is told with `-`. */
int resque_job_decode(struct job *job);
