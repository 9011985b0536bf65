/* SPDX-License-Identifier: MIT */
/* Clocks and delays, in microseconds. */
#include "io/clock.h"
#include <sys/random.h>

usec_t clock_now(clockid_t clock)
{
        struct timespec now;
        int r _unused_ = clock_gettime(clock, &now);

        assert(r == 0);
        return (usec_t)now.tv_sec * USEC_PER_SEC + (usec_t)now.tv_nsec / 1000;
}

usec_t reconnect_delay(unsigned failures, usec_t min, usec_t max)
{
        usec_t delay = min;
        uint32_t random = 0;

        for (unsigned i = 1; i < failures && delay < max; i++)
                delay *= 2;
        delay = MIN(delay, max);
        (void)getrandom(&random, sizeof(random), GRND_NONBLOCK);
        return delay / 2 + delay / 2 * (random % 1024) / 1024;
}
