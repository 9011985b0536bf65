/* SPDX-License-Identifier: MIT */
/* Makes text of foreign origin fit for logs, terminals and JSON. */
#include "base/printable.h"

size_t printable_utf8_length(const char *text, size_t length)
{
        static const struct {
                unsigned char first_min, first_max, second_min, second_max, length;
        } forms[] = {
                {0x00, 0x7F, 0x00, 0x00, 1}, {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
                {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
                {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
        };
        const unsigned char *bytes = (const unsigned char *)text;

        for (size_t i = 0; i < ELEMENTSOF(forms); i++) {
                if (bytes[0] < forms[i].first_min || bytes[0] > forms[i].first_max)
                        continue;
                if (forms[i].length == 1)
                        return 1;
                if (length < forms[i].length || bytes[1] < forms[i].second_min ||
                    bytes[1] > forms[i].second_max)
                        return 0;
                for (size_t k = 2; k < forms[i].length; k++)
                        if ((bytes[k] & 0xC0) != 0x80)
                                return 0;
                return forms[i].length;
        }
        return 0;
}

/* The length of the control sequence at text, or 0 where there is none, or one without its end. */
static size_t sequence_length(const unsigned char *text, size_t length)
{
        size_t n = 2;

        if (length < n || text[0] != 0x1B || text[1] != '[')
                return 0;
        while (n < length && text[n] >= 0x20 && text[n] <= 0x3F)
                n++;
        return n < length && text[n] >= 0x40 && text[n] <= 0x7E ? n + 1 : 0;
}

size_t printable_drop_colours(char *text, size_t length)
{
        size_t kept = 0;

        for (size_t i = 0; i < length;) {
                size_t n = sequence_length((const unsigned char *)text + i, length - i);

                if (n == 0)
                        text[kept++] = text[i++];
                i += n;
        }
        return kept;
}

void printable_replace(char *text, size_t length, bool keep_newlines)
{
        unsigned char *p = (unsigned char *)text;

        for (size_t i = 0; i < length;) {
                size_t n = printable_utf8_length(text + i, length - i);

                if (n == 2 && p[i] == 0xC2 && p[i + 1] < 0xA0) {
                        /* The C1 controls: terminals obey them as they obey ESC. */
                        p[i] = p[i + 1] = '?';
                } else if (n == 0) {
                        p[i] = '?';
                        n = 1;
                } else if (p[i] == '\t') {
                        p[i] = ' ';
                } else if ((p[i] < ' ' && !(p[i] == '\n' && keep_newlines)) || p[i] == 0x7F) {
                        p[i] = '?';
                }
                i += n;
        }
}
