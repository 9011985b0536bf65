/* SPDX-License-Identifier: MIT */
/* Chance, all of it from a seed. */
#pragma once

#include "base/usec.h"
#include <stdbool.h>

struct rng {
        uint64_t state;
};

/* splitmix64 (Steele, Lea and Flood, 2014). */
static inline uint64_t rng_next(struct rng *rng)
{
        uint64_t z = rng->state += 0x9e3779b97f4a7c15U;

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31);
}

/* A generator of its own for each purpose: what one draws changes nothing for the others. */
static inline struct rng rng_fork(uint64_t seed, uint64_t purpose)
{
        struct rng rng = {seed * 0x9e3779b97f4a7c15U ^ (purpose + 1) * 0xd1342543de82ef95U};

        rng_next(&rng);
        return rng;
}

/* From min to max, both included. */
static inline uint64_t rng_range(struct rng *rng, uint64_t min, uint64_t max)
{
        return max <= min ? min : min + rng_next(rng) % (max - min + 1);
}

static inline bool rng_chance(struct rng *rng, unsigned of_1000)
{
        return rng_next(rng) % 1000 < of_1000;
}

/* Roughly exponential: mostly short, sometimes long. */
static inline usec_t rng_wait(struct rng *rng, usec_t mean)
{
        usec_t wait = rng_range(rng, 0, mean);

        while (rng_chance(rng, 400))
                wait += rng_range(rng, 0, 2 * mean);
        return wait;
}
