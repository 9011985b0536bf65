/* SPDX-License-Identifier: MIT */
/* What the title of a process tells, whatever its framework. */
#pragma once

#include <stdbool.h>

struct title {
        char version[32]; /* "": not told */
        unsigned busy;
        unsigned concurrency;
        bool quiet;
        bool maybe_child; /* it may be that of a process which runs one job for a worker */
};
