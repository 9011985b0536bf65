/* SPDX-License-Identifier: MIT */
/* Measures a reply as it arrives. */
#include "redis/reply_limit.h"
#include "base/macro.h"
#include <string.h>

/* Parses the number of a header, including -1. Rejects leading zeros, so that hiredis cannot read another
 * number. */
static bool read_length(const struct reply_limit *reply_limit, size_t *ret, bool *ret_is_null)
{
        const char *text = reply_limit->line + 1;
        size_t n = reply_limit->length - 1, value = 0;

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

static enum reply_limit_outcome add_bytes(struct reply_limit *reply_limit, size_t n)
{
        if (n > REPLY_LIMIT_BYTES_MAX || reply_limit->bytes + n > REPLY_LIMIT_BYTES_MAX)
                return REPLY_LIMIT_TOO_MANY_BYTES;
        reply_limit->bytes += n;
        return REPLY_LIMIT_FITS;
}

static void end_item(struct reply_limit *reply_limit)
{
        if (--reply_limit->left == 0)
                *reply_limit = (struct reply_limit){.ended = reply_limit->ended + 1};
}

static enum reply_limit_outcome take_string(struct reply_limit *reply_limit)
{
        size_t length = 0;
        bool is_null;

        if (!read_length(reply_limit, &length, &is_null))
                return REPLY_LIMIT_MALFORMED;
        if (is_null) {
                end_item(reply_limit);
                return REPLY_LIMIT_FITS;
        }
        reply_limit->skip = length + 2; /* plus its end of line */
        return add_bytes(reply_limit, reply_limit->skip);
}

/* per is the number of items in each entry. */
static enum reply_limit_outcome take_list(struct reply_limit *reply_limit, size_t per)
{
        size_t length = 0;
        bool is_null;

        if (!read_length(reply_limit, &length, &is_null))
                return REPLY_LIMIT_MALFORMED;
        if (length > REPLY_LIMIT_ELEMENTS_MAX ||
            reply_limit->elements + length * per > REPLY_LIMIT_ELEMENTS_MAX)
                return REPLY_LIMIT_TOO_MANY_ELEMENTS;
        reply_limit->elements += length * per;
        reply_limit->left += length * per;
        end_item(reply_limit);
        return REPLY_LIMIT_FITS;
}

/* Handles a complete line. */
static enum reply_limit_outcome take_line(struct reply_limit *reply_limit)
{
        enum reply_limit_outcome outcome = REPLY_LIMIT_FITS;

        reply_limit->items++;
        switch (reply_limit->line[0]) {
        case '$':
        case '=':
                outcome = take_string(reply_limit);
                break;
        case '*':
        case '~':
        case '>':
                outcome = take_list(reply_limit, 1);
                break;
        case '%':
                outcome = take_list(reply_limit, 2);
                break;
        default:
                end_item(reply_limit);
        }
        reply_limit->length = 0;
        reply_limit->last = '\0';
        return outcome;
}

static enum reply_limit_outcome take_byte(struct reply_limit *reply_limit, char byte)
{
        if (reply_limit->length == 0) {
                if (!strchr("$=*~>%+-:_,#(", byte) || byte == '\0')
                        return REPLY_LIMIT_FOREIGN;
                reply_limit->left += reply_limit->left == 0;
        }
        /* As in hiredis, nothing else ends a line. */
        if (byte == '\n' && reply_limit->last == '\r') {
                reply_limit->length--;
                return take_line(reply_limit);
        }
        if (reply_limit->length < sizeof(reply_limit->line))
                reply_limit->line[reply_limit->length] = byte;
        reply_limit->last = byte;
        return ++reply_limit->length > REPLY_LIMIT_LINE_MAX ? REPLY_LIMIT_LINE_TOO_LONG
                                                            : add_bytes(reply_limit, 1);
}

enum reply_limit_outcome reply_limit_feed(struct reply_limit *reply_limit, const char *bytes, size_t n)
{
        enum reply_limit_outcome outcome = REPLY_LIMIT_FITS;

        reply_limit->ended = 0;
        reply_limit->tail = n;
        while (n > 0 && outcome == REPLY_LIMIT_FITS) {
                size_t step = reply_limit->skip > 0 ? MIN(reply_limit->skip, n) : 1;
                size_t ended = reply_limit->ended, tail = reply_limit->tail;

                if (reply_limit->skip == 0) {
                        outcome = take_byte(reply_limit, *bytes);
                } else {
                        reply_limit->skip -= step;
                        if (reply_limit->skip == 0)
                                end_item(reply_limit);
                }
                bytes += step;
                n -= step;
                reply_limit->tail = reply_limit->ended > ended ? n : tail;
        }
        return outcome;
}

/* An element is a redisReply, its text and a pointer, with what malloc() adds: 120 bytes at most. The
 * pointers of a list are there from its start. */
size_t reply_limit_memory(const struct reply_limit *reply_limit)
{
        size_t arrived = reply_limit->bytes - reply_limit->skip;

        return arrived + reply_limit->elements * sizeof(void *) + reply_limit->items * 112;
}

bool reply_limit_is_oversized(enum reply_limit_outcome outcome)
{
        return outcome == REPLY_LIMIT_TOO_MANY_BYTES || outcome == REPLY_LIMIT_TOO_MANY_ELEMENTS ||
               outcome == REPLY_LIMIT_LINE_TOO_LONG;
}

const char *reply_limit_explain(enum reply_limit_outcome outcome)
{
        static const char *const texts[] = {
                [REPLY_LIMIT_FITS] = "a reply that fits",
                [REPLY_LIMIT_TOO_MANY_BYTES] = "a reply of more than 32 MiB",
                [REPLY_LIMIT_TOO_MANY_ELEMENTS] = "a reply of more than 262144 elements",
                [REPLY_LIMIT_LINE_TOO_LONG] = "a line of more than 64 KiB",
                [REPLY_LIMIT_MALFORMED] = "an invalid length",
                [REPLY_LIMIT_FOREIGN] = "bytes that are not a Redis reply",
        };
        return texts[outcome];
}
