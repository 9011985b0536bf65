/* SPDX-License-Identifier: MIT */
/* When memory is so short that the machine stands still for it; see the header. */
#include "model/pressure.h"
#include <string.h>

#define LASTS_USEC     (10 * USEC_PER_SEC)
#define BETWEEN_USEC   USEC_PER_MIN
#define LEFT_PART      10 /* of all memory */
#define PERCENT_DIGITS 3

/* "12.34 " as 1234; goes beyond it. */
static bool take_percent(const char **text, unsigned *ret)
{
        unsigned whole = 0, digits = 0;
        const char *at = *text;

        for (; *at >= '0' && *at <= '9' && digits < PERCENT_DIGITS; at++, digits++)
                whole = whole * 10 + (unsigned)(*at - '0');
        if (digits == 0 || at[0] != '.' || at[1] < '0' || at[1] > '9' || at[2] < '0' || at[2] > '9' ||
            at[3] != ' ')
                return false;
        *ret = whole * 100 + (unsigned)(at[1] - '0') * 10 + (unsigned)(at[2] - '0');
        *text = at + 4;
        return true;
}

static bool take_word(const char **text, const char *word)
{
        size_t length = strlen(word);

        if (strncmp(*text, word, length) != 0)
                return false;
        *text += length;
        return true;
}

bool pressure_parse(const char *text, struct pressure_reading *ret)
{
        unsigned avg10, avg60;

        if (!take_word(&text, "some avg10=") || !take_percent(&text, &avg10) || !take_word(&text, "avg60=") ||
            !take_percent(&text, &avg60) || avg10 > 10000 || avg60 > 10000)
                return false;
        ret->avg10 = avg10;
        ret->avg60 = avg60;
        return true;
}

/* avg60 rises as long as what the last seconds had is more. */
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

void pressure_acted(struct pressure *pressure, usec_t now)
{
        pressure->acted_at = now;
}
