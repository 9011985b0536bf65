/* SPDX-License-Identifier: MIT */
/* Text on a terminal: its width, line wrapping and padding; and bounded appending. */
#include "base/text.h"
#include "base/printable.h"
#include <stdarg.h>
#include <string.h>

/* Decodes the character at text and returns its length in bytes. Each byte that is not UTF-8 counts as one
 * character. */
static size_t take_character(const char *text, size_t length, uint32_t *ret_character)
{
        size_t bytes = printable_utf8(text, length, ret_character);

        return bytes > 0 ? bytes : 1;
}

/* Characters that terminals show in two columns or none. wcwidth() depends on the locale, which may be C. */
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
        uint32_t character;
        int n = 0;

        for (size_t i = 0; i < (size_t)length;) {
                i += take_character(text + i, (size_t)length - i, &character);
                n += character_columns(character);
        }
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
                        uint32_t character;

                        bytes = take_character(line + i, length - i, &character);
                        columns -= character_columns(character);
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
        bool first = true; /* the next word is the first of its line */

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

char *text_format(const char *format, ...)
{
        va_list arguments;
        char *text;

        va_start(arguments, format);
        int length = vasprintf(&text, format, arguments);
        va_end(arguments);
        return length < 0 ? NULL : text;
}

int text_copy(const char *text, char **ret)
{
        *ret = text ? strdup(text) : NULL;
        return text && !*ret ? -ENOMEM : 0;
}

void text_append(char *text, size_t size, const char *format, ...)
{
        size_t length = strlen(text);
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text + length, size - length, format, arguments);
        va_end(arguments);
}
