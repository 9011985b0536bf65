/* SPDX-License-Identifier: MIT */
/* Computes the delay before a reconnection; see the header. */
#include "io/reconnect_delay.h"
#include "base/macro.h"
#include <sys/random.h>

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
