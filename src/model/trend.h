/* SPDX-License-Identifier: MIT */
/* Does a worker's memory grow without end? A straight line through the least that it held in each five
 * minutes of two hours, by the median of all slopes between two of these (Theil 1950, Sen 1968), which a few
 * odd points do not bend. What it says is advice. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

#define TREND_POINTS     24
#define TREND_POINT_USEC (5 * USEC_PER_MIN)

/* Of one worker; zeroes at first. */
struct trend {
        uint64_t points[TREND_POINTS]; /* bytes, the oldest first once all are there */
        unsigned n;                    /* so many, the newest at n - 1 */
        usec_t begun_at;               /* of those five minutes that are not over; 0: there are none */
        uint64_t least;                /* in these */
};

bool trend_fold(struct trend *trend, uint64_t bytes, usec_t now);
/* Folds one reading in. After a gap in which nothing was read it begins anew. Returns whether trend_fit() may
 * say something else now. Inline, since most readings of each worker change nothing. */
static inline bool trend_add(struct trend *trend, uint64_t bytes, usec_t now)
{
        return (trend->begun_at == 0 || now - trend->begun_at >= TREND_POINT_USEC || bytes < trend->least) &&
               trend_fold(trend, bytes, now);
}

enum trend_kind {
        TREND_YOUNG,  /* less than two hours are known */
        TREND_STEADY, /* it does not grow, or as what warms up does, ever more slowly, or by a jump */
        TREND_WILD,   /* the points are too far from a line */
        TREND_GROWS,
};

struct trend_fit {
        enum trend_kind kind;
        double slope;   /* bytes in a second; what follows means nothing with TREND_YOUNG */
        uint64_t level; /* the line now, in bytes */
};
struct trend_fit trend_fit(const struct trend *trend);

/* One worker that grows proves nothing: more than half of those of its generation that can be judged do, and
 * at least two, unless it is the only one. Sorts the fits. Returns whether so, with the median of those that
 * grow. */
bool trend_agree(struct trend_fit *fits, size_t n, struct trend_fit *ret);

/* How long until it holds that much, in microseconds; USEC_INFINITY: it does not grow, or not within 30 days.
 * 0: it does now. */
usec_t trend_reaches(const struct trend_fit *fit, uint64_t bytes);
