/* SPDX-License-Identifier: MIT */
/* The rule of scaling in simulated hours: targets are kept wherever the most workers could keep them, without
 * flapping and at little more than hindsight costs. SCALING_SEEDS worlds are made by chance. */
#include "queue_scenarios.h"
#include "unit.h"

#define SEED   1
#define STEADY 0

static struct run run, most;

/* What each job has waited for: under the rule, and with the most workers always. */
static void compare(const struct scenario *scenario, const struct arrivals *arrivals)
{
        float *waits[QUEUES_MAX], *least[QUEUES_MAX];
        double margin = margin_of(scenario);

        run_open(&run, scenario, arrivals, RULE_SQMGR, 0);
        run_open(&most, scenario, arrivals, RULE_FIXED, scenario->sites[0].max);
        for (size_t q = 0; q < QUEUES_MAX; q++) {
                run.waits[q] = waits[q] = calloc(arrivals[q].n + 1, sizeof(float));
                most.waits[q] = least[q] = calloc(arrivals[q].n + 1, sizeof(float));
                ck_assert(waits[q] && least[q]);
        }
        run_for(&run, scenario->hours * 3600);
        run_for(&most, scenario->hours * 3600);
        for (size_t q = 0; q < QUEUES_MAX; q++) {
                for (size_t i = 0; i < run.heads[q]; i++)
                        if (waits[q][i] > scenario->targets[q] &&
                            least[q][i] <= scenario->targets[q] - margin)
                                ck_abort_msg("%s: a job waits for %.1f s of %.1f s, and with all workers for "
                                             "%.1f s",
                                             scenario->name, (double)waits[q][i], scenario->targets[q],
                                             (double)least[q][i]);
                free(waits[q]);
                free(least[q]);
        }
}

/* It goes down no sooner than all of DOWN_AFTER after it went up: so there are two turns in that time at
 * most. */
static void judge(const struct scenario *scenario)
{
        ck_assert_msg(!run.outside, "%s: the count is below the least, or above the most", scenario->name);
        ck_assert_msg(run.reversals <= 2 * scenario->hours * 3600 / DOWN_AFTER, "%s: turns back %u times",
                      scenario->name, run.reversals);
}

/* One after the other, for what they cost is judged on average. */
TEST(keeps_its_targets_at_little_more_than_hindsight_costs)
{
        double ratios = 0;

        for (size_t i = 0; i < ELEMENTSOF(scenarios); i++) {
                const struct scenario *scenario = &scenarios[i];
                struct arrivals arrivals[QUEUES_MAX];

                make_arrivals(scenario, SEED, arrivals);
                compare(scenario, arrivals);
                judge(scenario);
                /* Here the most workers have enough to spare that nothing may be late. */
                ck_assert_msg(run.late == 0, "%s: %llu jobs are late", scenario->name,
                              (unsigned long long)run.late);
                ck_assert_uint_le(run.changes, 20 * (unsigned)scenario->hours * scenario->n_sites);
                if (i == STEADY)
                        ck_assert_uint_le(run.changes, (unsigned)scenario->hours);
                ratios += MAX(run.worker_seconds / hindsight(scenario, arrivals), 1.0);
                free_arrivals(arrivals);
        }
        ck_assert_double_le(ratios / ELEMENTSOF(scenarios), 1.3);
}

TEST(keeps_its_targets_whatever_comes)
{
        const char *text = getenv("SCALING_SEEDS");
        int seeds = text ? atoi(text) : 40;
        double turns = 0;

        for (int seed = 0; seed < seeds; seed++) {
                struct scenario scenario = random_scenario((uint64_t)seed);
                char name[32];

                snprintf(name, sizeof(name), "seed %d", seed);
                scenario.name = name;
                struct arrivals arrivals[QUEUES_MAX];
                make_arrivals(&scenario, (uint64_t)seed, arrivals);
                compare(&scenario, arrivals);
                judge(&scenario);
                turns += run.reversals / scenario.hours;
                free_arrivals(arrivals);
        }
        /* A burst is one turn up, and one down: each of these worlds has one or two an hour. */
        ck_assert_double_le(turns / seeds, 3);
}

#define HOST_SEEDS 3
#define HOST(least, ...)                                                                                     \
        {                                                                                                    \
                .min = (least), .max = 10, __VA_ARGS__                                                       \
        }
#define HOSTS(first, second, third)                                                                          \
        .sites = {first, second, third}, .n_sites = 3, .apart = true, .concurrency = 5, .boot = 10, .hours = 3
#define LOAD(from, to)                                                                                       \
        .targets = {HALF_MINUTE},                                                                            \
        .classes = {{.load_from = (from), .load_to = (to), .period = 3 * 3600, .service = 2}}

/* Three hosts on one queue, each of which sees the others by their heartbeats alone. */
static const struct {
        struct scenario scenario;
        unsigned turns; /* of each host */
        double ratio;   /* to what hindsight costs */
} hosts[] = {
        {{.name = "steady load", HOSTS(HOST(1), HOST(1), HOST(1)), LOAD(50, 50)}, 1, 1.4},
        {{.name = "a day", HOSTS(HOST(1), HOST(1), HOST(1)), LOAD(4, 80)}, 1, 1.4},
        {{.name = "one host at zero", HOSTS(HOST(2), HOST(2), HOST(0)), LOAD(40, 40)}, 1, 1.4},
        {{.name = "one host dies", HOSTS(HOST(3), HOST(3), HOST(3, .until = 6000)), LOAD(50, 50)}, 2, 1.4},
        {{.name = "one host joins", HOSTS(HOST(2), HOST(2), HOST(2, .from = 6000)), LOAD(40, 40)}, 1, 1.4},
        {{.name = "bursts",
          HOSTS(HOST(1), HOST(1), HOST(1)),
          .targets = {60},
          .classes = {{.load_from = 10, .service = 1}, {.service = 5, .burst = 400, .burst_every = 2400}}},
         10,
         3},
};

TEST_LOOP(hosts_that_see_heartbeats_alone_share_a_queue, ELEMENTSOF(hosts))
{
        const struct scenario *scenario = &hosts[_i].scenario;

        for (uint64_t seed = 1; seed <= HOST_SEEDS; seed++) {
                struct arrivals arrivals[QUEUES_MAX];

                make_arrivals(scenario, seed, arrivals);
                run_open(&run, scenario, arrivals, RULE_SQMGR, 0);
                run_for(&run, scenario->hours * 3600);
                judge(scenario);
                ck_assert_msg(run.late == 0, "%s, seed %llu: %llu jobs are late", scenario->name,
                              (unsigned long long)seed, (unsigned long long)run.late);
                double ratio = run.worker_seconds / hindsight(scenario, arrivals);
                ck_assert_msg(ratio <= hosts[_i].ratio, "%s, seed %llu: %.2f of what hindsight costs",
                              scenario->name, (unsigned long long)seed, ratio);
                for (size_t s = 0; s < scenario->n_sites; s++)
                        ck_assert_msg(run.sites[s].reversals <= hosts[_i].turns,
                                      "%s, seed %llu: host %zu turns back %u times", scenario->name,
                                      (unsigned long long)seed, s, run.sites[s].reversals);
                free_arrivals(arrivals);
        }
}

TEST_MAIN("scaling_worlds", .timeout_seconds = 600)
