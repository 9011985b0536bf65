/* SPDX-License-Identifier: MIT */
/* The worlds in which rules of scaling are compared, and one made by chance. */
#pragma once

#include "queue_world.h"

#define HALF_MINUTE   30
#define ONE_FLEET     .sites = {{.min = 2, .max = 10}}, .n_sites = 1, .concurrency = 5, .boot = 10
#define FOUR_HOURS    .hours = 4, .targets = {HALF_MINUTE}
#define DAY(from, to) .classes = {{.load_from = (from), .load_to = (to), .period = 4 * 3600, .service = 0.5}}

static const struct scenario scenarios[] = {
        {.name = "steady load", ONE_FLEET, FOUR_HOURS, DAY(12, 12)},
        {.name = "steady, close to what its workers can do", ONE_FLEET, FOUR_HOURS, DAY(14.8, 14.8)},
        {.name = "from little to much and back", ONE_FLEET, FOUR_HOURS, DAY(2, 35)},
        {.name = "the same, what a job takes not known", ONE_FLEET, FOUR_HOURS, DAY(2, 35), .blind = true},
        {.name = "bursts of 2,000 jobs",
         ONE_FLEET,
         .hours = 4,
         .targets = {60},
         .classes = {{.load_from = 2, .service = 0.5}, {.service = 0.5, .burst = 2000, .burst_every = 2400}}},
        {.name = "a slow class among fast ones",
         ONE_FLEET,
         FOUR_HOURS,
         .classes = {{.load_from = 4, .service = 0.05},
                     {.load_from = 6, .service = 10, .burst = 60, .burst_every = 1800}}},
        {.name = "two queues, one with a batch",
         ONE_FLEET,
         .hours = 4,
         .targets = {HALF_MINUTE, 300},
         .classes = {{.load_from = 6, .load_to = 10, .period = 7200, .service = 0.3},
                     {.queue = 1, .service = 2, .burst = 1500, .burst_every = 3600}}},
        {.name = "jobs of hours",
         ONE_FLEET,
         .hours = 12,
         .targets = {60},
         .classes = {{.load_from = 20, .service = 3600}}},
        {.name = "Redis away for two minutes",
         ONE_FLEET,
         .hours = 4,
         .targets = {60},
         .classes = {{.load_from = 10, .load_to = 20, .period = 7200, .service = 0.5}},
         .outage_at = 5000,
         .outage_for = 120},
        {.name = "a rollout while it rises",
         ONE_FLEET,
         FOUR_HOURS,
         DAY(2, 35),
         .rollout_at = 4000,
         .rollout_for = 300},
        {.name = "a queue that is paused",
         ONE_FLEET,
         .hours = 4,
         .targets = {HALF_MINUTE, HALF_MINUTE},
         .classes = {{.load_from = 6, .load_to = 10, .period = 7200, .service = 0.3},
                     {.queue = 1, .load_from = 1, .service = 0.3}},
         .paused_from = 3600},
        {.name = "three hosts on one queue",
         .sites = {{.min = 1, .max = 5}, {.min = 1, .max = 5}, {.min = 1, .max = 5}},
         .n_sites = 3,
         .apart = true,
         .concurrency = 5,
         .boot = 10,
         FOUR_HOURS,
         DAY(4, 60)},
        {.name = "two fleets on one queue",
         .sites = {{.min = 1, .max = 4}, {.min = 2, .max = 8}},
         .n_sites = 2,
         .concurrency = 5,
         .boot = 10,
         FOUR_HOURS,
         DAY(4, 40)},
        {.name = "one that nobody manages besides",
         .sites = {{.min = 2, .max = 10}, {.max = 3, .is_other = true, .from = 3600, .until = 9000}},
         .n_sites = 2,
         .concurrency = 5,
         .boot = 10,
         FOUR_HOURS,
         DAY(10, 30)},
};

/* What the rule may lose to a fleet that has its most workers always: two looks and the beats between them
 * tell of a burst, or a third of its target where it is not known what a job takes; and each doubling from
 * the least to the most takes a boot. */
static inline double margin_of(const struct scenario *scenario)
{
        double margin = 2 * POLL_SECONDS + HEARTBEAT + (scenario->blind ? scenario->targets[0] / 3 : 0);

        for (unsigned count = scenario->sites[0].min; count < scenario->sites[0].max; count *= 2)
                margin += scenario->boot;
        return margin;
}

static inline double between(struct rng *rng, double least, double most)
{
        return least + (most - least) * uniform(rng);
}

/* One fleet, a load that its most workers can bear, and bursts. */
static inline struct scenario random_scenario(uint64_t seed)
{
        struct rng rng = rng_fork(seed, 99);
        unsigned min = (unsigned)rng_range(&rng, 1, 4), max = min * (unsigned)rng_range(&rng, 2, 8);
        struct scenario scenario = {
                .name = "by chance",
                .hours = 3,
                .sites = {{.min = min, .max = max}},
                .n_sites = 1,
                .concurrency = (unsigned)rng_range(&rng, 1, THREADS_MAX),
                .boot = between(&rng, 1, 30),
                .blind = rng_chance(&rng, 200),
        };
        double threads = max * scenario.concurrency, target = between(&rng, 1.2, 5) * margin_of(&scenario);

        scenario.targets[0] = target;
        scenario.classes[0] = (struct class){
                .load_from = between(&rng, 0, 0.3) * threads,
                .load_to = between(&rng, 0.1, 0.6) * threads,
                .period = between(&rng, 1000, 10000),
                .service = between(&rng, 0.1, 2),
        };
        scenario.classes[1] = (struct class){
                .service = between(&rng, 0.1, 5),
                .burst_every = between(&rng, 1200, 3600),
        };
        scenario.classes[1].burst =
                (unsigned)(between(&rng, 0, 0.5) * threads * target / scenario.classes[1].service);
        return scenario;
}
