/* SPDX-License-Identifier: MIT */
/* Resource limits and CPU affinity of workers, in systemd's syntax. */
#pragma once

#include "base/macro.h"
#include <sched.h>
#include <sys/resource.h>

/* Parses `4096`, `infinity`, or both limits as `SOFT:HARD`; a size also as `512M`. Returns 0. Returns -EINVAL
 * if the format is wrong, a value is below min, or the soft limit is above the hard limit. */
int resource_limit_parse(const char *text, bool is_size, uint64_t min, struct rlimit *ret);

/* Parses CPU numbers and ranges, separated by blanks or commas: `0-3 5`. Returns 0 or -EINVAL. */
int resource_cpus_parse(const char *text, cpu_set_t *ret);
