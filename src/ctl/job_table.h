/* SPDX-License-Identifier: MIT */
/* The jobs that run, as a table. No I/O. */
#pragma once

#include "ctl/screen.h"
#include "wire/json.h"
#include <time.h>

/* jobs: as GetJobs tells them. Those that have run for longest come first. Returns 0, or -ENOMEM. */
int job_table_print(FILE *out, json_t *jobs, time_t now, const struct view *view);
