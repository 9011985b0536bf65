/* SPDX-License-Identifier: MIT */
/* Delays the next try longer after each failure in a row. */
#include "model/backoff.h"
#include "model/fleet.h"

/* splitmix64 (Steele, Lea and Flood, 2014): a state of 64 bits, any seed is valid. */
static uint64_t random_next(uint64_t *state)
{
        uint64_t z = *state += 0x9e3779b97f4a7c15U;

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31);
}

void backoff_fail(struct backoff *backoff, uint64_t *random, usec_t now)
{
        usec_t ceiling = BACKOFF_MIN_USEC;

        for (unsigned i = 0; i < backoff->count && ceiling < BACKOFF_MAX_USEC; i++)
                ceiling *= 2;
        ceiling = MIN(ceiling, BACKOFF_MAX_USEC);

        if (backoff->count++ == 0)
                backoff->since = now;
        backoff->failed_at = now;
        usec_t delay = random_next(random) % (ceiling + 1);
        backoff->next_at = MAX(backoff->next_at, usec_add(now, delay));
}

void backoff_reset(struct backoff *backoff)
{
        *backoff = (struct backoff){0};
}
