/* SPDX-License-Identifier: MIT */
/* Shared decoders that only readers need; see decode.h. */
#include "base/macro.h"
#include "frameworks/decode.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *decode_key(const char *namespace, const char *name, const char *suffix)
{
        bool prefixed = namespace && *namespace;
        char *key;

        if (asprintf(&key, "%s%s%s%s%s", prefixed ? namespace : "", prefixed ? ":" : "", name,
                     suffix ? ":" : "", suffix ? suffix : "") < 0)
                return NULL;
        return key;
}

char *decode_host_pattern(const char *host)
{
        char *pattern = malloc(2 * strlen(host) + sizeof(":*"));
        char *out = pattern;

        if (!pattern)
                return NULL;
        for (; *host; host++) {
                if (strchr("*?[]^-\\", *host))
                        *out++ = '\\';
                *out++ = *host;
        }
        memcpy(out, ":*", sizeof(":*"));
        return pattern;
}

/* Reads the character `before`, '\0' for none, then a number of exactly this many digits and at most max.
 * Moves *text behind it. */
static bool take_number(const char **text, char before, size_t digits, unsigned max, unsigned *ret)
{
        unsigned value = 0;

        if (before != '\0' && *(*text)++ != before)
                return false;
        for (; digits > 0; digits--, (*text)++) {
                if (**text < '0' || **text > '9')
                        return false;
                value = 10 * value + (unsigned)(**text - '0');
        }
        *ret = value;
        return value <= max;
}

/* Days since 1970 in the Gregorian calendar. The year starts in March so that the leap day is its last
 * day. */
static uint64_t days_of(unsigned year, unsigned month, unsigned day)
{
        unsigned y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;

        return (uint64_t)365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

/* Reads the offset from UTC in minutes. Fails if any text follows. */
static bool take_zone(const char *text, int *ret)
{
        bool behind = text[0] == '-';
        unsigned hours = 0, minutes = 0;

        if (text[0] == 'Z')
                text++;
        else if (text[0] != '\0' && (!take_number(&text, behind ? '-' : '+', 2, 23, &hours) ||
                                     !take_number(&text, ':', 2, 59, &minutes)))
                return false;
        *ret = (behind ? -1 : 1) * (int)(hours * 60 + minutes);
        return text[0] == '\0';
}

bool decode_iso8601(const struct field *field, uint64_t *ret_usec)
{
        char copy[40];
        const char *at = copy;
        unsigned year, month, day, hour, minute, second;
        int zone;

        if (!field->text || field->len >= sizeof(copy) || memchr(field->text, '\0', field->len))
                return false;
        memcpy(copy, field->text, field->len);
        copy[field->len] = '\0';
        if (!take_number(&at, '\0', 4, 9999, &year) || !take_number(&at, '-', 2, 12, &month) ||
            !take_number(&at, '-', 2, 31, &day) || !take_number(&at, 'T', 2, 23, &hour) ||
            !take_number(&at, ':', 2, 59, &minute) || !take_number(&at, ':', 2, 60, &second) || year < 1970 ||
            month < 1 || day < 1)
                return false;
        unsigned usec = 0;
        if (*at == '.') {
                at++;
                usec = decode_fraction(&at, copy + field->len);
        }
        if (!take_zone(at, &zone))
                return false;
        int64_t minutes = (int64_t)((days_of(year, month, day) * 24 + hour) * 60 + minute) - zone;
        if (minutes < 0)
                return false;
        *ret_usec = (uint64_t)minutes * USEC_PER_MIN + second * USEC_PER_SEC + usec;
        return true;
}
