/* SPDX-License-Identifier: MIT */
/* Random numbers from a seed, or from bytes and, once these are used up, from a seed. */
#pragma once

#include "base/macro.h"

struct rng {
        uint64_t state;
        const uint8_t *bytes; /* used first, so that a fuzzer that makes them can influence what happens */
        size_t left;
};

/* splitmix64 (Steele, Lea and Flood, 2014). */
static inline uint64_t rng_next(struct rng *rng)
{
        uint64_t z = rng->state += 0x9e3779b97f4a7c15U;

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31);
}

/* Makes a separate generator for a purpose: draws from one do not change the others. */
static inline struct rng rng_fork(uint64_t seed, uint64_t purpose)
{
        struct rng rng = {.state = seed * 0x9e3779b97f4a7c15U ^ (purpose + 1) * 0xd1342543de82ef95U};

        rng_next(&rng);
        return rng;
}

/* Returns a number that the caller takes modulo max + 1. Uses no more bytes than max needs. */
static inline uint64_t rng_draw(struct rng *rng, uint64_t max)
{
        uint64_t value = 0;

        if (rng->left == 0)
                return rng_next(rng);
        for (; max > 0 && rng->left > 0; max >>= 8, rng->left--)
                value = value << 8 | *rng->bytes++;
        return value;
}

/* Returns a number from min to max, both included. */
static inline uint64_t rng_range(struct rng *rng, uint64_t min, uint64_t max)
{
        return max <= min ? min : min + rng_draw(rng, max - min) % (max - min + 1);
}

static inline bool rng_chance(struct rng *rng, unsigned of_1000)
{
        return rng_draw(rng, 999) % 1000 < of_1000;
}

/* Returns a roughly exponential time: mostly short, sometimes long. */
static inline usec_t rng_wait(struct rng *rng, usec_t mean)
{
        usec_t wait = rng_range(rng, 0, mean);

        while (rng_chance(rng, 400))
                wait += rng_range(rng, 0, 2 * mean);
        return wait;
}

/* Returns a number from 0 to less than 1. */
static inline double rng_uniform(struct rng *rng)
{
        return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

/* Returns an exponential number of mean 1, by von Neumann's comparisons. */
static inline double rng_exponential(struct rng *rng)
{
        for (double whole = 0;; whole++) {
                double first = rng_uniform(rng), last = first;
                unsigned n = 1;

                for (double next; (next = rng_uniform(rng)) < last; last = next)
                        n++;
                if (n % 2 == 1)
                        return whole + first;
        }
}
