/* SPDX-License-Identifier: MIT */
/* Detects memory pressure; see the header. */
#include "model/pressure.h"
#include <stdio.h>
#include <string.h>

#define LASTS_USEC   (10 * USEC_PER_SEC)
#define BETWEEN_USEC USEC_PER_MIN
#define LEFT_PART    10 /* pressure needs less than 1/LEFT_PART of memory available */

/* Returns `12.34`, split at the point, as 1234. */
static unsigned hundredths(const char *whole, const char *part)
{
        return (unsigned)(strtoul(whole, NULL, 10) * 100 + strtoul(part, NULL, 10));
}

bool pressure_parse(const char *text, struct pressure_reading *ret)
{
        char whole10[4], part10[3], whole60[4], part60[3], blank[2];

        /* A blank in the format would match any number of blanks, and %u a sign. */
        if (sscanf(text, "some%*1[ ]avg10=%3[0-9].%2[0-9]%*1[ ]avg60=%3[0-9].%2[0-9]%1[ ]", whole10, part10,
                   whole60, part60, blank) != 5 ||
            strlen(part10) != 2 || strlen(part60) != 2)
                return false;
        unsigned avg10 = hundredths(whole10, part10), avg60 = hundredths(whole60, part60);
        if (avg10 > 10000 || avg60 > 10000)
                return false;
        ret->avg10 = avg10;
        ret->avg60 = avg60;
        return true;
}

/* avg60 rises while the last seconds are above it. */
static bool rises(const struct pressure_reading *reading)
{
        return reading->avg10 > reading->avg60;
}

static bool is_over(const struct pressure_reading *reading, unsigned limit)
{
        return reading->avg10 > limit && reading->available_bytes < reading->total_bytes / LEFT_PART;
}

enum pressure_outcome pressure_observe(struct pressure *pressure, const struct pressure_reading *reading,
                                       unsigned limit, usec_t now)
{
        if (is_over(reading, limit) == pressure->high) {
                pressure->turned_at = 0;
                return PRESSURE_SAME;
        }
        if (pressure->turned_at == 0)
                pressure->turned_at = now;
        if (now - pressure->turned_at < LASTS_USEC || (!pressure->high && !rises(reading)))
                return PRESSURE_SAME;
        pressure->high = !pressure->high;
        pressure->turned_at = 0;
        return pressure->high ? PRESSURE_BEGAN : PRESSURE_ENDED;
}

bool pressure_acts(const struct pressure *pressure, const struct pressure_reading *reading, usec_t now)
{
        return pressure->high && pressure->turned_at == 0 && rises(reading) &&
               (pressure->acted_at == 0 || now - pressure->acted_at >= BETWEEN_USEC);
}
