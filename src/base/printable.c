/* SPDX-License-Identifier: MIT */
/* Sanitizes untrusted text for logs, terminals and JSON. */
#include "base/printable.h"
#include <string.h>

size_t printable_utf8(const char *text, size_t length, uint32_t *ret_character)
{
        const unsigned char *bytes = (const unsigned char *)text;
        static const struct {
                unsigned char first_min, first_max, second_min, second_max, length;
        } forms[] = {
                {0x00, 0x7F, 0x00, 0x00, 1}, {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
                {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
                {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
        };

        *ret_character = bytes[0];
        for (size_t i = 0; i < ELEMENTSOF(forms); i++) {
                size_t n = forms[i].length;

                if (bytes[0] < forms[i].first_min || bytes[0] > forms[i].first_max)
                        continue;
                if (n == 1)
                        return 1;
                if (length < n || bytes[1] < forms[i].second_min || bytes[1] > forms[i].second_max)
                        return 0;
                uint32_t character = bytes[0] & (0x7FU >> n);
                for (size_t k = 1; k < n; k++) {
                        if ((bytes[k] & 0xC0) != 0x80)
                                return 0;
                        character = character << 6 | (bytes[k] & 0x3FU);
                }
                *ret_character = character;
                return n;
        }
        return 0;
}

/* Returns the length of the control sequence at text, or 0 if there is no complete one. */
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
                uint32_t character;
                size_t n = printable_utf8(text + i, length - i, &character);

                if (n == 2 && character < 0xA0) {
                        /* Terminals obey the C1 controls as they obey ESC. */
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

char *printable_copy(const char *text, bool keep_newlines)
{
        char *copy = strdup(text);

        if (copy)
                printable_replace(copy, strlen(copy), keep_newlines);
        return copy;
}
