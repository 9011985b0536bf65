/* SPDX-License-Identifier: MIT */
/* Parses numbers, durations, sizes and signals strictly, and formats durations and sizes. */
#include "base/parse.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct unit {
        const char *name;
        uint64_t factor;
};

/* Both tables go from the largest unit to the smallest. */
static const struct unit duration_units[] = {
        {"d", USEC_PER_DAY}, {"h", USEC_PER_HOUR},  {"min", USEC_PER_MIN},
        {"s", USEC_PER_SEC}, {"ms", USEC_PER_MSEC},
};

static const struct unit size_units[] = {
        {"T", UINT64_C(1) << 40},
        {"G", UINT64_C(1) << 30},
        {"M", UINT64_C(1) << 20},
        {"K", UINT64_C(1) << 10},
};

/* Reads the digits at *text and advances *text. */
static int parse_digits(const char **text, uint64_t *ret)
{
        char *end;

        if (**text < '0' || **text > '9')
                return -EINVAL;
        errno = 0;
        *ret = strtoull(*text, &end, 10);
        *text = end;
        return -errno;
}

int parse_unsigned(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
        uint64_t value = 0;

        /* An overflowing number is out of bounds, not malformed, if the text has digits only. */
        if (text[strspn(text, "0123456789")] != '\0')
                return -EINVAL;
        int r = parse_digits(&text, &value);
        if (r < 0)
                return r;
        if (value < min || value > max)
                return -ERANGE;
        *ret = value;
        return 0;
}

/* Reads the unit at *text, letters up to the next non-letter, and advances *text. */
static int parse_duration_unit(const char **text, uint64_t *ret_factor)
{
        size_t len = strspn(*text, "abcdefghijklmnopqrstuvwxyz");

        for (size_t i = 0; i < ELEMENTSOF(duration_units); i++) {
                if (strlen(duration_units[i].name) == len &&
                    strncmp(*text, duration_units[i].name, len) == 0) {
                        *text += len;
                        *ret_factor = duration_units[i].factor;
                        return 0;
                }
        }
        return -EINVAL;
}

int parse_duration(const char *text, usec_t *ret_usec)
{
        usec_t sum = 0, last_factor = USEC_INFINITY;

        do {
                uint64_t number = 0, factor = 0;
                int r = parse_digits(&text, &number);
                if (r == 0)
                        r = parse_duration_unit(&text, &factor);
                if (r == 0 && factor >= last_factor)
                        r = -EINVAL;
                if (r < 0)
                        return r;
                last_factor = factor;
                if (__builtin_mul_overflow(number, factor, &number) ||
                    __builtin_add_overflow(sum, number, &sum))
                        return -ERANGE;
                /* Blanks may separate two numbers, but not follow the last. */
                size_t blanks = strspn(text, " \t");
                if (text[blanks] != '\0')
                        text += blanks;
        } while (*text != '\0');

        *ret_usec = sum;
        return 0;
}

static int parse_percent_of(uint64_t percent, uint64_t total_bytes, uint64_t *ret_bytes)
{
        if (percent < 1 || percent > 100)
                return -ERANGE;
        if (total_bytes == 0)
                return -ENODATA;
        *ret_bytes = total_bytes / 100 * percent + total_bytes % 100 * percent / 100;
        return 0;
}

int parse_size(const char *text, uint64_t total_bytes, uint64_t *ret_bytes)
{
        uint64_t number = 0;

        int r = parse_digits(&text, &number);
        if (r < 0)
                return r;
        if (strcmp(text, "%") == 0)
                return parse_percent_of(number, total_bytes, ret_bytes);
        if (*text == '\0') {
                *ret_bytes = number;
                return 0;
        }
        for (size_t i = 0; i < ELEMENTSOF(size_units); i++) {
                if (strcasecmp(text, size_units[i].name) != 0)
                        continue;
                if (__builtin_mul_overflow(number, size_units[i].factor, &number))
                        return -ERANGE;
                *ret_bytes = number;
                return 0;
        }
        return -EINVAL;
}

int parse_signal(const char *text, int *ret)
{
        if (strncasecmp(text, "SIG", 3) == 0)
                text += 3;
        for (int i = 1; i < NSIG; i++) {
                const char *name = sigabbrev_np(i);
                if (name && strcasecmp(text, name) == 0) {
                        *ret = i;
                        return 0;
                }
        }
        return -EINVAL;
}

int percent_decode(const char *text, size_t len, char **ret, const char **why)
{
        char *out = malloc(len + 1);
        size_t n = 0;

        if (!out)
                return -ENOMEM;
        for (size_t i = 0; i < len; i++) {
                char digits[3] = "";

                if (text[i] != '%') {
                        out[n++] = text[i];
                        continue;
                }
                if (i + 2 < len)
                        memcpy(digits, text + i + 1, 2);
                out[n] = strspn(digits, "0123456789abcdefABCDEF") == 2 ? (char)strtoul(digits, NULL, 16)
                                                                       : '\0';
                if (out[n++] == '\0') {
                        free(out);
                        return parse_refuse(why,
                                            "a '%' must be followed by two hexadecimal digits, not both 0");
                }
                i += 2;
        }
        out[n] = '\0';
        *ret = out;
        return 0;
}

const char *format_duration(usec_t usec, char *text, size_t size)
{
        if (usec == USEC_INFINITY) {
                snprintf(text, size, "forever");
        } else if (usec < USEC_PER_SEC) {
                usec_t ms = usec / USEC_PER_MSEC;
                snprintf(text, size, "%" PRIu64 "%s", ms, ms == 0 ? "s" : "ms");
        } else if (usec < 10 * USEC_PER_SEC && usec / 100000 % 10 > 0) {
                snprintf(text, size, "%" PRIu64 ".%" PRIu64 "s", usec / USEC_PER_SEC, usec / 100000 % 10);
        } else {
                const struct unit *unit = duration_units;
                while (usec < unit->factor)
                        unit++;
                uint64_t count = usec / unit->factor, rest = 0;
                /* Print the next smaller unit too, down to seconds. */
                if (unit->factor > USEC_PER_SEC)
                        rest = usec % unit->factor / unit[1].factor;
                if (rest > 0)
                        snprintf(text, size, "%" PRIu64 "%s %" PRIu64 "%s", count, unit->name, rest,
                                 unit[1].name);
                else
                        snprintf(text, size, "%" PRIu64 "%s", count, unit->name);
        }
        return text;
}

const char *format_size(uint64_t bytes, char *text, size_t size)
{
        for (size_t i = 0; i < ELEMENTSOF(size_units); i++) {
                uint64_t factor = size_units[i].factor;
                if (bytes < factor)
                        continue;
                uint64_t whole = bytes / factor, tenths = bytes % factor * 10 / factor;
                if (whole < 10 && tenths > 0)
                        snprintf(text, size, "%" PRIu64 ".%" PRIu64 "%s", whole, tenths, size_units[i].name);
                else
                        snprintf(text, size, "%" PRIu64 "%s", whole, size_units[i].name);
                return text;
        }
        snprintf(text, size, "%" PRIu64 " bytes", bytes);
        return text;
}

const char *format_duration_exact(usec_t usec, char *text, size_t size)
{
        const struct unit *unit = duration_units;

        usec -= usec % USEC_PER_MSEC;
        if (usec == 0) {
                snprintf(text, size, "0s");
                return text;
        }
        while (usec % unit->factor != 0)
                unit++;
        snprintf(text, size, "%" PRIu64 "%s", usec / unit->factor, unit->name);
        return text;
}

const char *format_size_exact(uint64_t bytes, char *text, size_t size)
{
        for (size_t i = 0; i < ELEMENTSOF(size_units); i++) {
                if (bytes > 0 && bytes % size_units[i].factor == 0) {
                        snprintf(text, size, "%" PRIu64 "%s", bytes / size_units[i].factor,
                                 size_units[i].name);
                        return text;
                }
        }
        snprintf(text, size, "%" PRIu64, bytes);
        return text;
}
