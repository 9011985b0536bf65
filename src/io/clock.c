/* SPDX-License-Identifier: MIT */
/* The clocks, in microseconds. */
#include "io/clock.h"
#include <assert.h>

usec_t clock_now(clockid_t clock)
{
        struct timespec now;
        int r = clock_gettime(clock, &now);

        assert(r == 0);
        (void)r;
        return (usec_t)now.tv_sec * USEC_PER_SEC + (usec_t)now.tv_nsec / 1000;
}
