/* SPDX-License-Identifier: MIT */
/* What a fleet's workers may take of the machine, as systemd writes it: limits of resources, and processors.
 */
#pragma once

#include "base/macro.h"
#include <sched.h>
#include <sys/resource.h>

/* `4096`, `infinity`, or both limits as `SOFT:HARD`; sizes as `512M`, too. Returns 0, or -EINVAL where it has
 * another form, is not within min and RLIM_INFINITY, or the soft limit is above the hard one. */
int resource_limit_parse(const char *text, bool is_size, uint64_t min, struct rlimit *ret);

/* Numbers and ranges of processors, with blanks or commas between them: `0-3 5`. Returns 0 or -EINVAL. */
int resource_cpus_parse(const char *text, cpu_set_t *ret);
