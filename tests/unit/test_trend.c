/* SPDX-License-Identifier: MIT */
/* Memory that grows without end, and what only looks so: curves made up with noise, each many times. */
#include "../sim/rng.h"
#include "model/trend.h"
#include "unit.h"

#define MEGABYTE ((double)(1 << 20))
#define SIBLINGS 3
#define HOURS    12
#define WORLDS   50

enum curve { LEAK, SLOW_LEAK, FLAT, PLATEAU, SAWTOOTH, JUMP, STEPS, FRAGMENTATION, _CURVES };

static double chance(struct rng *rng)
{
        return (double)(rng_next(rng) >> 11) / (double)(1ULL << 53);
}

/* 1 - exp(-x), near enough, without a library of mathematics. */
static double saturates(double x)
{
        double rest = 1;

        for (int i = 0; i < 64; i++)
                rest *= 1 - MIN(x, 60.0) / 64;
        return 1 - rest;
}

/* In megabytes, so many hours after it was started; a and b are of this worker. */
static double curve_at(enum curve curve, double hours, double a, double b)
{
        double warm = 250 + 60 * saturates(hours * 4);

        switch (curve) {
        case LEAK:
                return warm + (20 + 60 * a) * hours;
        case SLOW_LEAK:
                return warm + 6 * hours;
        case FLAT:
                return warm;
        case PLATEAU:
                return warm + 300 * saturates(hours / (0.2 + 0.4 * a));
        case SAWTOOTH: {
                double turns = (hours + b) / (0.4 + 1.2 * a);

                return warm + 150 * (turns - (double)(int)turns);
        }
        case JUMP:
                return warm + (hours > 2 + 6 * a ? 50 + 200 * b : 0);
        case STEPS:
                return warm + 60 * (double)(int)(hours / (0.7 + 0.9 * a) + b);
        case FRAGMENTATION:
                return warm + 120 * saturates(hours / 0.5) * (0.9 + 0.1 * a);
        case _CURVES:
                break;
        }
        return 0;
}

/* Runs some workers of one generation, read each 30 s. Returns the first hour in which they agree that they
 * grow; 0: they do not. */
static double run_world(enum curve curve, uint64_t seed, struct trend_fit *ret)
{
        struct trend trends[SIBLINGS] = {0};
        struct rng rng = rng_fork(seed, curve);
        double a[SIBLINGS], b[SIBLINGS];

        for (size_t i = 0; i < SIBLINGS; i++) {
                a[i] = chance(&rng);
                b[i] = chance(&rng);
        }
        for (unsigned second = 0; second < HOURS * 3600; second += 30) {
                struct trend_fit fits[SIBLINGS] = {0};
                double hours = second / 3600.0;

                for (size_t i = 0; i < SIBLINGS; i++) {
                        /* A job may need 80 MB for a while; between two of them it is off by 1 MB. */
                        double noise = (chance(&rng) < 0.7 ? 80 * chance(&rng) : 0) + chance(&rng);

                        trend_add(&trends[i],
                                  (uint64_t)((curve_at(curve, hours, a[i], b[i]) + noise) * MEGABYTE),
                                  USEC_PER_DAY + second * USEC_PER_SEC);
                        if (second % 300 == 0)
                                fits[i] = trend_fit(&trends[i]);
                }
                if (second % 300 == 0 && trend_agree(fits, SIBLINGS, ret))
                        return hours;
        }
        return 0;
}

/* In how many of the worlds it is reported. */
static unsigned reported(enum curve curve)
{
        unsigned n = 0;

        for (uint64_t seed = 0; seed < WORLDS; seed++) {
                struct trend_fit fit;

                n += run_world(curve, seed, &fit) > 0;
        }
        return n;
}

TEST(a_leak_is_reported_once_the_warm_up_is_over)
{
        for (uint64_t seed = 0; seed < WORLDS; seed++) {
                struct trend_fit fit;
                double hours = run_world(LEAK, seed, &fit);

                ck_assert_double_ge(hours, 2);
                ck_assert_double_le(hours, 4.5);
                ck_assert_double_ge(fit.slope * 3600 / MEGABYTE, 12);
                ck_assert_double_le(fit.slope * 3600 / MEGABYTE, 100);
        }
        ck_assert_uint_eq(reported(SLOW_LEAK), WORLDS);
}

TEST(what_ends_by_itself_is_no_leak)
{
        ck_assert_uint_eq(reported(FLAT), 0);
        ck_assert_uint_eq(reported(PLATEAU), 0);
        ck_assert_uint_eq(reported(FRAGMENTATION), 0);
        ck_assert_uint_eq(reported(JUMP), 0);
        ck_assert_uint_eq(reported(STEPS), 0);
        ck_assert_uint_le(reported(SAWTOOTH), 2);
}

static struct trend grown(uint64_t from, uint64_t step)
{
        struct trend trend = {0};

        for (unsigned i = 0; i <= TREND_POINTS; i++)
                trend_add(&trend, from + i * step, USEC_PER_DAY + i * TREND_POINT_USEC);
        return trend;
}

TEST(when_it_reaches_a_limit)
{
        struct trend trend = grown(1000000, 12000);
        struct trend_fit fit = trend_fit(&trend);

        ck_assert_int_eq(fit.kind, TREND_GROWS);
        ck_assert_double_eq_tol(fit.slope, 40, 0.001);
        ck_assert_uint_eq(fit.level, 1000000 + 23 * 12000);
        ck_assert_uint_eq(trend_reaches(&fit, fit.level + 144000), USEC_PER_HOUR);
        ck_assert_uint_eq(trend_reaches(&fit, fit.level), 0);
        ck_assert_uint_eq(trend_reaches(&fit, UINT64_MAX), USEC_INFINITY);
        trend = grown(1000000, 0);
        fit = trend_fit(&trend);
        ck_assert_int_eq(fit.kind, TREND_STEADY);
        ck_assert_uint_eq(trend_reaches(&fit, 2000000), USEC_INFINITY);
        ck_assert_uint_eq(trend_reaches(&fit, 900000), 0);
}

TEST(nothing_is_known_before_two_hours_and_after_a_gap)
{
        struct trend trend = grown(1000000, 12000);

        trend.n = TREND_POINTS - 1;
        ck_assert_int_eq(trend_fit(&trend).kind, TREND_YOUNG);
        trend = grown(1000000, 12000);
        trend_add(&trend, 2000000, USEC_PER_DAY + 2 * USEC_PER_HOUR + 10 * USEC_PER_MIN);
        ck_assert_uint_eq(trend.n, 0);
        ck_assert_int_eq(trend_fit(&trend).kind, TREND_YOUNG);
        ck_assert_uint_eq(trend_reaches(&(struct trend_fit){.kind = TREND_YOUNG}, 1), USEC_INFINITY);
}

TEST(a_few_odd_points_bend_no_line)
{
        struct trend trend = grown(1000000, 12000);

        trend.points[3] = 90000000;
        trend.points[17] = 0;
        trend.points[23] = UINT64_MAX;
        ck_assert_int_eq(trend_fit(&trend).kind, TREND_GROWS);
        ck_assert_double_eq_tol(trend_fit(&trend).slope, 40, 2);
}

TEST(siblings_must_agree)
{
        const struct trend_fit grows = {TREND_GROWS, 40, 1000}, faster = {TREND_GROWS, 60, 1000},
                               steady = {TREND_STEADY, 0, 1000}, young = {TREND_YOUNG, 0, 0};
        struct trend_fit one[] = {grows}, two[] = {steady, grows}, three[] = {grows, steady, faster},
                         first[] = {grows, young, young}, none[] = {young}, ret = {0};

        ck_assert(trend_agree(one, 1, &ret));
        ck_assert(!trend_agree(two, 2, &ret));
        ck_assert(trend_agree(three, 3, &ret));
        ck_assert_double_eq(ret.slope, 60);
        ck_assert(!trend_agree(first, 3, &ret));
        ck_assert(!trend_agree(none, 1, &ret));
        ck_assert(!trend_agree(NULL, 0, &ret));
}

TEST_MAIN("trend")
