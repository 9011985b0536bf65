/* SPDX-License-Identifier: MIT */
/* Text on a terminal: how wide it is, and where its lines are broken. */
#include "base/text.h"
#include <string.h>

static bool begins_character(char byte)
{
        return ((unsigned char)byte & 0xc0) != 0x80;
}

/* The character that begins there, and how many bytes it has; what is no UTF-8 is a byte each. */
static uint32_t character_at(const char *text, size_t length, size_t *ret_bytes)
{
        unsigned char first = (unsigned char)text[0];
        size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
        uint32_t character = bytes == 1 ? first : first & (0x7fU >> bytes);

        *ret_bytes = 1;
        if (bytes > length)
                return first;
        for (size_t i = 1; i < bytes; i++) {
                if (begins_character(text[i]))
                        return first;
                character = character << 6 | ((unsigned char)text[i] & 0x3f);
        }
        *ret_bytes = bytes;
        return character;
}

/* Those that terminals show in two columns, or in none: wcwidth() asks the locale, which may be C. */
static const struct {
        uint32_t first, last;
        int columns;
} widths[] = {
        {0x300, 0x36f, 0},     {0x1100, 0x115f, 2},   {0x200b, 0x200f, 0},   {0x2e80, 0x303e, 2},
        {0x3041, 0xa4cf, 2},   {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},   {0xfe00, 0xfe0f, 0},
        {0xfe30, 0xfe6f, 2},   {0xff00, 0xff60, 2},   {0xffe0, 0xffe6, 2},   {0x1f300, 0x1f64f, 2},
        {0x1f680, 0x1f6ff, 2}, {0x1f900, 0x1f9ff, 2}, {0x20000, 0x3fffd, 2},
};

static int character_columns(uint32_t character)
{
        for (size_t i = 0; i < ELEMENTSOF(widths) && character >= widths[i].first; i++)
                if (character <= widths[i].last)
                        return widths[i].columns;
        return 1;
}

static int text_columns(const char *text, int length)
{
        size_t bytes;
        int n = 0;

        for (size_t i = 0; i < (size_t)length; i += bytes)
                n += character_columns(character_at(text + i, (size_t)length - i, &bytes));
        return n;
}

int text_width(const char *text)
{
        return text_columns(text, (int)strlen(text));
}

size_t text_fitting(const char *line, size_t length, int columns)
{
        size_t i = 0, bytes;

        while (i < length) {
                if (line[i] == '\033') {
                        while (i < length && line[i] != 'm')
                                i++;
                        bytes = 1;
                } else {
                        columns -= character_columns(character_at(line + i, length - i, &bytes));
                        if (columns < 0)
                                return i;
                }
                i += bytes;
        }
        return MIN(i, length);
}

void text_print_cell(FILE *out, const char *text, int width)
{
        fprintf(out, "%s%*s", text, MAX(width - text_width(text), 0), "");
}

void text_print_wrapped(FILE *out, const char *text, int used, int indent, int columns)
{
        int at = used;
        bool first = true; /* of its line */

        while (*text != '\0') {
                int blanks = (int)strspn(text, " "), length = (int)strcspn(text + blanks, " \n");
                int width = text_columns(text + blanks, length);

                if (!first && columns > 0 && at + blanks + width > columns) {
                        fprintf(out, "\n%*s%.*s", indent, "", length, text + blanks);
                        at = indent + width;
                } else {
                        fprintf(out, "%.*s", blanks + length, text);
                        at += blanks + width;
                }
                text += blanks + length;
                first = *text == '\n';
                if (first) {
                        fprintf(out, "\n%*s", indent, "");
                        at = indent;
                        text++;
                }
        }
        fputc('\n', out);
}
