/* SPDX-License-Identifier: MIT */
/* Detects memory pressure: the machine or the control group stalls for lack of memory. Uses the kernel's
 * pressure stall information (its Documentation/accounting/psi.rst) and the available memory. Neither alone
 * is an emergency: a large cache causes reclaim, and a full machine may be healthy. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct pressure_reading {
        unsigned avg10,
                avg60; /* share of the time in which something waited for memory: hundredths of a percent */
        uint64_t available_bytes, total_bytes;
};

/* Reads avg10 and avg60 from the line "some" of a file such as /proc/pressure/memory. Returns false and
 * leaves *ret unchanged if text has no such line in the kernel's format. */
bool pressure_parse(const char *text, struct pressure_reading *ret);

struct pressure {
        usec_t turned_at; /* since when the readings contradict `high`; 0: they agree with it */
        usec_t acted_at;  /* when a worker was last asked to leave; 0: never */
        bool high;
};

enum pressure_outcome {
        PRESSURE_SAME,
        PRESSURE_BEGAN,
        PRESSURE_ENDED,
};

/* Records one reading. limit: pressure_limit in hundredths of a percent. Pressure becomes high after ten
 * seconds above the limit with less than a tenth of memory available, if still rising. Pressure ends after
 * ten seconds without that. */
enum pressure_outcome pressure_observe(struct pressure *pressure, const struct pressure_reading *reading,
                                       unsigned limit, usec_t now);

/* Returns true if a worker may be asked to leave now: pressure is high and rising, and the last request was a
 * minute ago. */
bool pressure_acts(const struct pressure *pressure, const struct pressure_reading *reading, usec_t now);
