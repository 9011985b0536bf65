/* SPDX-License-Identifier: MIT */
/* Clocks, in microseconds. */
#include "io/clock.h"
#include "base/macro.h"
#include <assert.h>

usec_t clock_now(clockid_t clock)
{
        struct timespec now;
        int r _unused_ = clock_gettime(clock, &now);

        assert(r == 0);
        return (usec_t)now.tv_sec * USEC_PER_SEC + (usec_t)now.tv_nsec / 1000;
}
