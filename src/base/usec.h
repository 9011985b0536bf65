/* SPDX-License-Identifier: MIT */
/* Time as a count of microseconds. */
#pragma once

#include <stdint.h>

typedef uint64_t usec_t;

#define USEC_INFINITY ((usec_t)UINT64_MAX)
#define USEC_PER_MSEC ((usec_t)1000)
#define USEC_PER_SEC  ((usec_t)1000000)
#define USEC_PER_MIN  (60 * USEC_PER_SEC)
#define USEC_PER_HOUR (60 * USEC_PER_MIN)
#define USEC_PER_DAY  (24 * USEC_PER_HOUR)

/* Returns a + b, at most USEC_INFINITY. */
static inline usec_t usec_add(usec_t a, usec_t b)
{
        return a > USEC_INFINITY - b ? USEC_INFINITY : a + b;
}

/* Returns seconds. */
static inline double usec_seconds(usec_t usec)
{
        return (double)usec / (double)USEC_PER_SEC;
}

/* Returns a - b, at least 0. */
static inline usec_t usec_sub(usec_t a, usec_t b)
{
        return a > b ? a - b : 0;
}
