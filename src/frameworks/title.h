/* SPDX-License-Identifier: MIT */
/* The information in a process title, for every framework. */
#pragma once

#include <stdbool.h>

struct title {
        char version[32]; /* "": unknown */
        unsigned busy;
        unsigned concurrency;
        bool quiet;
        bool maybe_child; /* may be the title of a process that runs one job for a worker */
};
