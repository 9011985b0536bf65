/* SPDX-License-Identifier: MIT */
/* Detects a memory leak: whether a worker's memory grows without end. Fits a straight line through the
 * minimum of each five minutes over two hours. The slope is the median of the slopes between all pairs of
 * points (Theil 1950, Sen 1968), which a few outliers do not bend. The result is advice. */
#pragma once

#include "base/macro.h"

#define TREND_POINTS     24
#define TREND_POINT_USEC (5 * USEC_PER_MIN)

/* The readings of one worker; zeroed at first. */
struct trend {
        uint64_t points[TREND_POINTS]; /* bytes, in order of time, the oldest first */
        unsigned n;                    /* number of points, the newest at n - 1 */
        usec_t begun_at;               /* start of the current five minutes; 0: none */
        uint64_t least;                /* minimum in the current five minutes */
};

bool trend_fold(struct trend *trend, uint64_t bytes, usec_t now);
/* Records one reading. Starts anew after a gap without readings. Returns true if trend_fit() may have another
 * result now. Inline because most readings change nothing. */
static inline bool trend_add(struct trend *trend, uint64_t bytes, usec_t now)
{
        return (trend->begun_at == 0 || now - trend->begun_at >= TREND_POINT_USEC || bytes < trend->least) &&
               trend_fold(trend, bytes, now);
}

enum trend_kind {
        TREND_YOUNG,   /* less than two hours of readings */
        TREND_STEADY,  /* no growth, or growth that slows down as in a warmup, or by a jump */
        TREND_ERRATIC, /* the points are too far from a line */
        TREND_GROWS,
};

struct trend_fit {
        enum trend_kind kind;
        double slope;   /* bytes per second; this and the next are undefined for TREND_YOUNG */
        uint64_t level; /* the current value of the line, in bytes */
};
struct trend_fit trend_fit(const struct trend *trend);

/* Combines the fits of the workers of one generation, since growth of one worker proves nothing. Returns true
 * if more than half of those that can be judged grow, and at least two, or the only one. *ret: the median of
 * those that grow. Sorts fits. */
bool trend_agree(struct trend_fit *fits, size_t n, struct trend_fit *ret);

/* Returns the time in microseconds until the line reaches bytes. 0: already there. USEC_INFINITY: no growth,
 * or not within 30 days. */
usec_t trend_reaches(const struct trend_fit *fit, uint64_t bytes);
