/* SPDX-License-Identifier: MIT */
/* Trials of releases in simulated worlds: how often a release that makes no difference is halted, and after
 * how many jobs a worse one is found. Usage: trials [TRIALS]; TRIALS is the number for each release and
 * world.
 *
 * A fleet of six workers with ten threads each runs jobs of ten classes; one worker is new. Workers report
 * what they have done every 10 s, each at a time of its own, and windows are made of these reports as
 * rollout_trial/trial_rules.c does. */
#include "../sim/rng.h"
#include "rollout_trial/trial_rules.h"
#include "unit.h"
#include <math.h>
#include <stdio.h>

#define WORKERS 6
#define THREADS 10
#define REPORT  10.0 /* seconds between two reports */
#define MINUTES 10   /* rollout_trial */

struct world {
        const char *name;
        double base;    /* failure rate of all jobs */
        double mean;    /* seconds of a job */
        double sigma;   /* of the logarithm of its length */
        double idle;    /* seconds that a thread waits for a job */
        double outages; /* seconds between two outages, which hit all workers alike; 0: none */
        double outage;  /* mean length of one */
        bool at_once;   /* jobs that fail for another reason than the release or an outage fail at once */
        double retried; /* share of failed jobs that are run again, and fail as likely as not */
};

static const struct world worlds[] = {
        {.name = "steady", .base = 0.02, .mean = 6, .sigma = 1},
        {.name = "fast jobs", .base = 0.02, .mean = 0.2, .sigma = 1},
        {.name = "slow jobs", .base = 0.02, .mean = 45, .sigma = 1.5},
        {.name = "slow jobs that fail at once", .base = 0.1, .mean = 60, .sigma = 0.5, .at_once = true},
        {.name = "few jobs", .base = 0.02, .mean = 6, .sigma = 1, .idle = 90},
        {.name = "failures are rare", .base = 0.001, .mean = 6, .sigma = 1},
        {.name = "failures are common", .base = 0.2, .mean = 6, .sigma = 1},
        {.name = "outages", .base = 0.02, .mean = 3, .sigma = 1, .outages = 120, .outage = 20},
        {.name = "short outages of fast jobs",
         .base = 0.01,
         .mean = 0.2,
         .sigma = 1,
         .outages = 60,
         .outage = 5},
        {.name = "failed jobs are retried", .base = 0.05, .mean = 6, .sigma = 1, .retried = 0.9},
};

/* Failures in one class of ten of the new release, in percent. */
static const double releases[] = {0, 1, 2, 5, 10, 20, 50};

struct worker {
        bool new;
        double begun, offset;
        double ends[THREADS];
        bool fails[THREADS]; /* the job that runs */
        struct trial_counts counts, reported, before;
};

struct run {
        const struct world *world;
        double extra; /* failure rate of the new release in one class of ten */
        struct rng rng;
        struct worker workers[WORKERS];
        double outage_from, outage_until;
        unsigned retries; /* failed jobs that wait to be run again */
};

/* Seconds until the next job of a thread ends. */
static double length(struct run *run, bool fails)
{
        const struct world *world = run->world;

        if (fails && world->at_once)
                return 0.5;
        double normal = sqrt(-2 * log(1 - rng_uniform(&run->rng))) * cos(2 * M_PI * rng_uniform(&run->rng));
        double job = world->mean * exp(world->sigma * normal - world->sigma * world->sigma / 2);

        return job + (world->idle > 0 ? world->idle * rng_exponential(&run->rng) : 0);
}

/* Moves on to the outage that matters at that time. */
static bool is_out(struct run *run, double at)
{
        while (run->world->outages > 0 && at >= run->outage_until) {
                run->outage_from = run->outage_until + run->world->outages * rng_exponential(&run->rng);
                run->outage_until = run->outage_from + run->world->outage * rng_exponential(&run->rng);
        }
        return run->world->outages > 0 && at >= run->outage_from;
}

static void begin_job(struct run *run, struct worker *worker, unsigned thread)
{
        bool retries = run->retries > 0 && rng_uniform(&run->rng) < 0.5;

        run->retries -= retries;
        worker->fails[thread] = rng_uniform(&run->rng) < (retries ? 0.5 : run->world->base);
        worker->ends[thread] += length(run, worker->fails[thread]);
}

static void end_job(struct run *run, struct worker *worker, unsigned thread, bool out)
{
        bool failed = worker->fails[thread];

        if (worker->new &&rng_uniform(&run->rng) < 0.1)
                failed |= rng_uniform(&run->rng) < run->extra;
        if (out)
                failed |= rng_uniform(&run->rng) < 0.9;
        worker->counts.processed++;
        worker->counts.failed += failed;
        run->retries += failed && rng_uniform(&run->rng) < run->world->retried;
}

static void step(struct run *run, double now)
{
        bool out = is_out(run, now);

        for (struct worker *worker = run->workers; worker < run->workers + WORKERS; worker++) {
                if (now < worker->begun)
                        continue;
                for (unsigned i = 0; i < THREADS; i++)
                        while (worker->ends[i] <= now) {
                                end_job(run, worker, i, out);
                                begin_job(run, worker, i);
                        }
                if (fmod(now + worker->offset, REPORT) < 1)
                        worker->reported = worker->counts;
        }
}

static void window(struct run *run, struct trial *trial)
{
        struct trial_counts sums[2] = {0};

        for (struct worker *worker = run->workers; worker < run->workers + WORKERS; worker++) {
                sums[worker->new].processed += worker->reported.processed - worker->before.processed;
                sums[worker->new].failed += worker->reported.failed - worker->before.failed;
                worker->before = worker->reported;
        }
        trial_add(trial, &sums[true], &sums[false]);
}

/* Returns the verdict; *ret_jobs: the number of new jobs until then. */
static enum trial_verdict try_release(const struct world *world, double extra, uint64_t seed,
                                      uint64_t *ret_jobs)
{
        const usec_t duration = MINUTES * USEC_PER_MIN;
        struct run run = {.world = world, .extra = extra, .rng = rng_fork(seed, 1)};
        struct trial trial = {.begun_at = USEC_PER_HOUR};
        enum trial_verdict verdict = TRIAL_RUNNING;

        /* The old workers have been at work for a while; the threads of the new one are empty. */
        for (unsigned i = 0; i < WORKERS; i++) {
                struct worker *worker = &run.workers[i];

                worker->new = i == 0;
                worker->begun = worker->new ? 0 : -600;
                worker->offset = REPORT * rng_uniform(&run.rng);
                for (unsigned k = 0; k < THREADS; k++) {
                        worker->ends[k] = worker->begun;
                        begin_job(&run, worker, k);
                }
        }
        for (int second = -600; verdict == TRIAL_RUNNING; second++) {
                step(&run, second);
                /* Jobs of before the trial do not count, nor those of the first window of a worker. */
                if (second == (int)(TRIAL_WINDOW_USEC / USEC_PER_SEC))
                        window(&run, &(struct trial){0});
                if (second <= (int)(TRIAL_WINDOW_USEC / USEC_PER_SEC) ||
                    second % (int)(TRIAL_WINDOW_USEC / USEC_PER_SEC) != 0)
                        continue;
                window(&run, &trial);
                verdict = trial_judge(&trial, duration, trial.begun_at + (usec_t)second * USEC_PER_SEC);
        }
        *ret_jobs = trial.new.processed;
        return verdict;
}

static int compare(const void *a, const void *b)
{
        const uint64_t *left = a, *right = b;

        return (*left > *right) - (*left < *right);
}

/* Tries a release so often, and prints a cell: how often it was halted, and the median of new jobs until
 * then. Returns how often. */
static unsigned try_often(const struct world *world, double percent, unsigned trials)
{
        uint64_t *jobs = calloc(trials, sizeof(*jobs));
        unsigned worse = 0;

        if (!jobs)
                abort();
        for (unsigned i = 0; i < trials; i++) {
                uint64_t seed = ((uint64_t)(world - worlds) << 40) + ((uint64_t)percent << 20) + i, n;

                if (try_release(world, percent / 100, seed, &n) == TRIAL_WORSE)
                        jobs[worse++] = n;
        }
        qsort(jobs, worse, sizeof(*jobs), compare);
        if (worse > 0)
                printf(" %u of %u (%llu) |", worse, trials, (unsigned long long)jobs[worse / 2]);
        else
                printf(" 0 of %u |", trials);
        free(jobs);
        return worse;
}

/* Returns how often a rate that triples from 2 % is found with the 1000th new job, or before, against 5000
 * old ones: 20 windows of 50 and 250 jobs. */
static unsigned find_tripled(unsigned trials)
{
        struct run run = {.rng = rng_fork(1, 2)};
        unsigned found = 0;

        for (unsigned i = 0; i < trials; i++) {
                struct trial trial = {.begun_at = 1};
                bool worse = false;

                for (unsigned k = 0; k < 20 && !worse; k++) {
                        struct trial_counts new = {.processed = 50}, old = {.processed = 250};

                        for (unsigned j = 0; j < 50; j++)
                                new.failed += rng_uniform(&run.rng) < 0.06;
                        for (unsigned j = 0; j < 250; j++)
                                old.failed += rng_uniform(&run.rng) < 0.02;
                        trial_add(&trial, &new, &old);
                        worse = trial_judge(&trial, USEC_PER_HOUR, 1) == TRIAL_WORSE;
                }
                found += worse;
        }
        return found;
}

static unsigned trials_ordered(unsigned otherwise)
{
        const char *text = getenv("TRIALS");

        return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

/* Releases that make no difference halt once in a thousand trials at most. One that fails half of the jobs of
 * a class is found if failures are few and jobs many. */
TEST(worlds_and_releases)
{
        unsigned trials = trials_ordered(4), harmless = 10 * trials_ordered(10), halted = 0;

        printf("| world | failures of all jobs |");
        for (size_t k = 0; k < ELEMENTSOF(releases); k++)
                printf(" +%g%% in one class |", releases[k]);
        printf("\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
        FOREACH_ELEMENT(world, worlds) {
                printf("| %s | %g%% |", world->name, world->base * 100);
                halted += try_often(world, 0, harmless);
                for (size_t k = 1; k < ELEMENTSOF(releases); k++) {
                        unsigned found = try_often(world, releases[k], trials);

                        if (world < worlds + 2 && releases[k] >= 50)
                                ck_assert_uint_ge(found, trials * 95 / 100);
                }
                printf("\n");
        }
        printf("no difference: %u of %zu halted\n", halted, harmless * ELEMENTSOF(worlds));
        ck_assert_uint_le(halted, MAX(harmless * ELEMENTSOF(worlds) / 1000, (size_t)1));
}

TEST(a_tripled_failure_rate_is_found_within_a_thousand_jobs)
{
        unsigned trials = 10 * trials_ordered(40), found = find_tripled(trials);

        printf("2%% to 6%%, 1000 new jobs, 5000 old ones: %u of %u found\n", found, trials);
        ck_assert_uint_ge(found, trials * 95 / 100);
}

TEST_MAIN("trial_worlds", .timeout_seconds = 3600)
