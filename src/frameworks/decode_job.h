/* SPDX-License-Identifier: MIT */
/* Loads jobs, which are JSON. Pure. */
#pragma once

#include <jansson.h>
#include <stddef.h>

/* Loads a job: a JSON object from a queue or a work list. Returns 0; -EMSGSIZE if the job is longer than
 * JOB_ENTRY_MAX, has too many values or is nested too deep; -EINVAL if text is not a JSON object; or -ENOMEM.
 * The caller owns *ret. */
int decode_job(const char *text, size_t len, json_t **ret);
