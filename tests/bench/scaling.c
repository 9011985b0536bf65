/* SPDX-License-Identifier: MIT */
/* Prints a table of what scaling rules cost and achieve in the scenarios of tests/unit/queue_scenarios.h: the
 * mean of some seeds. */
#include "../unit/queue_scenarios.h"

#define SEEDS 5

static const struct {
        const char *name;
        enum rule rule;
} rules[] = {
        {"sqmgr", RULE_SQMGR},
        {"Horizon", RULE_HORIZON},
        {"Judoscale", RULE_JUDOSCALE},
        {"the most, always", RULE_FIXED},
};

struct figures {
        double hours, ratio, worst, changes;
        uint64_t late, cut;
};

static void add(struct figures *figures, const struct run *run, double best)
{
        figures->hours += run->worker_seconds / 3600 / SEEDS;
        figures->ratio += run->worker_seconds / best / SEEDS;
        figures->worst = MAX(figures->worst, run->worst);
        figures->changes += run->changes / run->scenario->hours / SEEDS;
        figures->late += run->late;
        figures->cut += run->cut;
}

/* A rule may have a schedule of its own that meets all targets. */
static void run_seed(const struct scenario *scenario, uint64_t seed,
                     struct figures figures[ELEMENTSOF(rules)], double *best_hours)
{
        static struct run runs[ELEMENTSOF(rules)];
        struct arrivals arrivals[QUEUES_MAX];

        make_arrivals(scenario, seed, arrivals);
        double best = hindsight(scenario, arrivals);
        for (size_t i = 0; i < ELEMENTSOF(rules); i++) {
                run_open(&runs[i], scenario, arrivals, rules[i].rule, scenario->sites[0].max);
                run_for(&runs[i], scenario->hours * 3600);
                run_end(&runs[i]);
                if (runs[i].late == 0 && runs[i].cut == 0)
                        best = MIN(best, runs[i].worker_seconds);
        }
        for (size_t i = 0; i < ELEMENTSOF(rules); i++)
                add(&figures[i], &runs[i], best);
        *best_hours += best / 3600 / SEEDS;
        free_arrivals(arrivals);
}

static void print_row(const char *world, const char *rule, const struct figures *figures)
{
        printf("| %s | %s | %.1f | %.2f | %.2f | %llu | %.1f | %llu |\n", world, rule, figures->hours,
               figures->ratio, figures->worst, (unsigned long long)figures->late, figures->changes,
               (unsigned long long)figures->cut);
}

int main(void)
{
        struct figures all[ELEMENTSOF(rules)] = {0};

        puts("| world | rule | worker hours | by hindsight | longest wait | late | changes an hour | cut off "
             "|\n"
             "| --- | --- | --- | --- | --- | --- | --- | --- |");
        for (size_t i = 0; i < ELEMENTSOF(scenarios); i++) {
                struct figures figures[ELEMENTSOF(rules)] = {0};
                double best = 0;

                for (uint64_t seed = 1; seed <= SEEDS; seed++)
                        run_seed(&scenarios[i], seed, figures, &best);
                for (size_t r = 0; r < ELEMENTSOF(rules); r++) {
                        print_row(r == 0 ? scenarios[i].name : "", rules[r].name, &figures[r]);
                        all[r].hours += figures[r].hours;
                        all[r].ratio += figures[r].ratio / ELEMENTSOF(scenarios);
                        all[r].worst = MAX(all[r].worst, figures[r].worst);
                        all[r].changes += figures[r].changes / ELEMENTSOF(scenarios);
                        all[r].late += figures[r].late;
                        all[r].cut += figures[r].cut;
                }
                printf("| | hindsight | %.1f | 1 | | 0 | | 0 |\n", best);
                fflush(stdout);
        }
        for (size_t r = 0; r < ELEMENTSOF(rules); r++)
                print_row(r == 0 ? "all of them" : "", rules[r].name, &all[r]);
        return 0;
}
