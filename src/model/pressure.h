/* SPDX-License-Identifier: MIT */
/* When memory is so short that the machine, or the control group, stands still for it: by the kernel's
 * pressure stall information (its Documentation/accounting/psi.rst) and what memory is left. One of the two
 * alone is no emergency: much is reclaimed where much is cached, and a machine may be full and at ease. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct pressure_reading {
        unsigned avg10, avg60; /* of the time in which something waited for memory: hundredths of a percent */
        uint64_t available_bytes, total_bytes;
};

/* Reads avg10 and avg60 of the line "some" of a file such as /proc/pressure/memory. Returns false, and leaves
 * ret as it was, where text has no such line as the kernel writes it. */
bool pressure_parse(const char *text, struct pressure_reading *ret);

struct pressure {
        usec_t turned_at; /* it is over the limit, or is no longer, since then, and `high` says otherwise; 0:
                             not so */
        usec_t acted_at;  /* when a worker was last asked to leave; 0: never */
        bool high;
};

enum pressure_outcome {
        PRESSURE_SAME,
        PRESSURE_BEGAN,
        PRESSURE_ENDED,
};

/* Folds one reading in. limit: pressure_limit, as hundredths of a percent. It is high once it was over the
 * limit, with less than a tenth of memory left, for ten seconds, and still rises; and until that was not so
 * for ten seconds. */
enum pressure_outcome pressure_observe(struct pressure *pressure, const struct pressure_reading *reading,
                                       unsigned limit, usec_t now);

/* A worker may be told to leave for it now: it is high and rises, and the last one was told a minute ago or
 * more. */
bool pressure_acts(const struct pressure *pressure, const struct pressure_reading *reading, usec_t now);
