/* SPDX-License-Identifier: MIT */
/* How large is the reply that arrives? */
#include "io/gauge.h"
#include "base/macro.h"
#include <string.h>

/* The number in a header, -1 too. Without needless digits: what counts here must be what hiredis reads. */
static bool read_length(const struct gauge *gauge, size_t *ret, bool *ret_is_null)
{
        const char *text = gauge->line + 1;
        size_t n = gauge->length - 1, value = 0;

        *ret_is_null = n == 2 && memcmp(text, "-1", 2) == 0;
        if (*ret_is_null)
                return true;
        if (n == 0 || n > 15 || (n > 1 && text[0] == '0'))
                return false;
        for (size_t i = 0; i < n; i++) {
                if (text[i] < '0' || text[i] > '9')
                        return false;
                value = value * 10 + (size_t)(text[i] - '0');
        }
        *ret = value;
        return true;
}

static enum gauge_outcome add_bytes(struct gauge *gauge, size_t n)
{
        if (n > GAUGE_BYTES_MAX || gauge->bytes + n > GAUGE_BYTES_MAX)
                return GAUGE_TOO_MANY_BYTES;
        gauge->bytes += n;
        return GAUGE_FITS;
}

static void end_item(struct gauge *gauge)
{
        if (--gauge->left == 0)
                *gauge = (struct gauge){.ended = gauge->ended + 1};
}

static enum gauge_outcome take_string(struct gauge *gauge)
{
        size_t length = 0;
        bool is_null;

        if (!read_length(gauge, &length, &is_null))
                return GAUGE_MALFORMED;
        if (is_null) {
                end_item(gauge);
                return GAUGE_FITS;
        }
        gauge->skip = length + 2; /* its end of line */
        return add_bytes(gauge, gauge->skip);
}

/* per: items of each entry. */
static enum gauge_outcome take_list(struct gauge *gauge, size_t per)
{
        size_t length = 0;
        bool is_null;

        if (!read_length(gauge, &length, &is_null))
                return GAUGE_MALFORMED;
        if (length > GAUGE_ELEMENTS_MAX || gauge->elements + length * per > GAUGE_ELEMENTS_MAX)
                return GAUGE_TOO_MANY_ELEMENTS;
        gauge->elements += length * per;
        gauge->left += length * per;
        end_item(gauge);
        return GAUGE_FITS;
}

/* A whole line is there. */
static enum gauge_outcome take_line(struct gauge *gauge)
{
        enum gauge_outcome outcome = GAUGE_FITS;

        switch (gauge->line[0]) {
        case '$':
        case '=':
                outcome = take_string(gauge);
                break;
        case '*':
        case '~':
        case '>':
                outcome = take_list(gauge, 1);
                break;
        case '%':
                outcome = take_list(gauge, 2);
                break;
        default:
                end_item(gauge);
        }
        gauge->length = 0;
        gauge->last = '\0';
        return outcome;
}

static enum gauge_outcome take_byte(struct gauge *gauge, char byte)
{
        if (gauge->length == 0) {
                if (!strchr("$=*~>%+-:_,#(", byte) || byte == '\0')
                        return GAUGE_FOREIGN;
                gauge->left += gauge->left == 0;
        }
        /* hiredis, too, takes nothing else for the end of a line. */
        if (byte == '\n' && gauge->last == '\r') {
                gauge->length--;
                return take_line(gauge);
        }
        if (gauge->length < sizeof(gauge->line))
                gauge->line[gauge->length] = byte;
        gauge->last = byte;
        return ++gauge->length > GAUGE_LINE_MAX ? GAUGE_LINE_TOO_LONG : add_bytes(gauge, 1);
}

enum gauge_outcome gauge_feed(struct gauge *gauge, const char *bytes, size_t n)
{
        enum gauge_outcome outcome = GAUGE_FITS;

        gauge->ended = 0;
        while (n > 0 && outcome == GAUGE_FITS) {
                size_t step = gauge->skip > 0 ? MIN(gauge->skip, n) : 1;

                if (gauge->skip == 0) {
                        outcome = take_byte(gauge, *bytes);
                } else {
                        gauge->skip -= step;
                        if (gauge->skip == 0)
                                end_item(gauge);
                }
                bytes += step;
                n -= step;
        }
        return outcome;
}

bool gauge_is_oversized(enum gauge_outcome outcome)
{
        return outcome == GAUGE_TOO_MANY_BYTES || outcome == GAUGE_TOO_MANY_ELEMENTS ||
               outcome == GAUGE_LINE_TOO_LONG;
}

const char *gauge_explain(enum gauge_outcome outcome)
{
        static const char *const texts[] = {
                [GAUGE_FITS] = "a reply that fits",
                [GAUGE_TOO_MANY_BYTES] = "a reply of more than 32 MiB",
                [GAUGE_TOO_MANY_ELEMENTS] = "a reply of more than 262144 elements",
                [GAUGE_LINE_TOO_LONG] = "a line of more than 64 KiB",
                [GAUGE_MALFORMED] = "a length that is none",
                [GAUGE_FOREIGN] = "what is no reply of a Redis",
        };
        return texts[outcome];
}
