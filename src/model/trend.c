/* SPDX-License-Identifier: MIT */
/* Detects a memory leak; see the header. */
#include "model/trend.h"
#include <string.h>

#define PAIRS ((size_t)TREND_POINTS * (TREND_POINTS - 1) / 2)
/* Each half and each third must grow at least at this share of the whole slope. Warmup, a single jump and
 * occasional steps do not. */
#define PART_SHARE 0.6
/* Minimum growth in two hours: this share of the level, and this multiple of the points' distance from the
 * line. */
#define LEAST_GROWTH   0.02
#define LEAST_RESIDUES 4
/* A greater distance, as a share of the level, means that the points form no line. */
#define MOST_RESIDUE 0.05
#define HORIZON_USEC (30 * USEC_PER_DAY)

static void push(struct trend *trend, uint64_t bytes)
{
        if (trend->n == TREND_POINTS)
                memmove(trend->points, trend->points + 1, sizeof(trend->points) - sizeof(trend->points[0]));
        else
                trend->n++;
        trend->points[trend->n - 1] = bytes;
}

bool trend_fold(struct trend *trend, uint64_t bytes, usec_t now)
{
        bool changed = false;

        if (trend->begun_at != 0 && now - trend->begun_at >= 2 * TREND_POINT_USEC) {
                *trend = (struct trend){0};
                changed = true;
        }
        if (trend->begun_at == 0) {
                trend->begun_at = now;
                trend->least = bytes;
        } else if (now - trend->begun_at >= TREND_POINT_USEC) {
                push(trend, trend->least);
                trend->begun_at += TREND_POINT_USEC;
                trend->least = bytes;
                changed = trend->n == TREND_POINTS;
        }
        trend->least = MIN(trend->least, bytes);
        return changed;
}

static int compare(const void *a, const void *b)
{
        double left = *(const double *)a, right = *(const double *)b;

        return (left > right) - (left < right);
}

static double median(double *values, size_t n)
{
        qsort(values, n, sizeof(*values), compare);
        return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Bytes from one point to the next. */
static double slope_of(const uint64_t *points, size_t n)
{
        double slopes[PAIRS] = {0};
        size_t n_slopes = 0;

        for (size_t i = 0; i < n; i++)
                for (size_t j = i + 1; j < n; j++)
                        slopes[n_slopes++] = ((double)points[j] - (double)points[i]) / (double)(j - i);
        return median(slopes, n_slopes);
}

/* Returns the start of the line with that slope. *ret_residue: the distance of the points from the line,
 * ignoring the farthest quarter. */
static double base_of(const uint64_t *points, double slope, double *ret_residue)
{
        double rest[TREND_POINTS];

        for (size_t i = 0; i < TREND_POINTS; i++)
                rest[i] = (double)points[i] - slope * (double)i;
        double base = median(rest, TREND_POINTS);
        for (size_t i = 0; i < TREND_POINTS; i++)
                rest[i] = rest[i] > base ? rest[i] - base : base - rest[i];
        qsort(rest, TREND_POINTS, sizeof(*rest), compare);
        *ret_residue = rest[TREND_POINTS * 3 / 4];
        return base;
}

/* True if each part of length points grows. */
static bool grows_in_all(const uint64_t *points, size_t length, double slope)
{
        for (size_t i = 0; i + length <= TREND_POINTS; i += length)
                if (slope_of(points + i, length) < PART_SHARE * slope)
                        return false;
        return true;
}

static enum trend_kind kind_of(const uint64_t *points, double slope, double level, double residue)
{
        double leak = slope * (TREND_POINTS - 1);

        if (residue > MOST_RESIDUE * level)
                return TREND_ERRATIC;
        if (leak <= LEAST_GROWTH * level || leak <= LEAST_RESIDUES * residue)
                return TREND_STEADY;
        return grows_in_all(points, TREND_POINTS / 2, slope) && grows_in_all(points, TREND_POINTS / 3, slope)
                       ? TREND_GROWS
                       : TREND_STEADY;
}

struct trend_fit trend_fit(const struct trend *trend)
{
        double residue;

        if (trend->n < TREND_POINTS)
                return (struct trend_fit){.kind = TREND_YOUNG};
        double slope = slope_of(trend->points, TREND_POINTS);
        double level = base_of(trend->points, slope, &residue) + slope * (TREND_POINTS - 1);
        return (struct trend_fit){
                .kind = kind_of(trend->points, slope, level, residue),
                .slope = slope * USEC_PER_SEC / TREND_POINT_USEC,
                .level = level > 0 ? (uint64_t)level : 0,
        };
}

/* Growing fits first, in ascending order of slope. */
static int compare_fits(const void *a, const void *b)
{
        const struct trend_fit *left = a, *right = b;

        if (left->kind != right->kind)
                return left->kind > right->kind ? -1 : 1;
        return (left->slope > right->slope) - (left->slope < right->slope);
}

bool trend_agree(struct trend_fit *fits, size_t n, struct trend_fit *ret)
{
        size_t judged = 0, grow = 0;

        if (n == 0)
                return false;
        qsort(fits, n, sizeof(*fits), compare_fits);
        for (size_t i = 0; i < n; i++) {
                judged += fits[i].kind != TREND_YOUNG;
                grow += fits[i].kind == TREND_GROWS;
        }
        if (2 * grow <= judged || (grow < 2 && n > 1))
                return false;
        *ret = fits[grow / 2];
        return true;
}

usec_t trend_reaches(const struct trend_fit *fit, uint64_t bytes)
{
        if (fit->kind == TREND_YOUNG)
                return USEC_INFINITY;
        if (fit->level >= bytes)
                return 0;
        if (fit->kind != TREND_GROWS || fit->slope <= 0)
                return USEC_INFINITY;
        double left = (double)(bytes - fit->level) / fit->slope * USEC_PER_SEC;
        return left < (double)HORIZON_USEC ? (usec_t)left : USEC_INFINITY;
}
