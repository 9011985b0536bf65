/* SPDX-License-Identifier: MIT */
/* Text on a terminal: how wide it is, and where its lines are broken. */
#include "base/text.h"
#include <string.h>

static bool begins_character(char byte)
{
        return ((unsigned char)byte & 0xc0) != 0x80;
}

static int text_columns(const char *text, int length)
{
        int n = 0;

        for (int i = 0; i < length; i++)
                n += begins_character(text[i]);
        return n;
}

int text_width(const char *text)
{
        return text_columns(text, (int)strlen(text));
}

size_t text_fitting(const char *line, size_t length, int columns)
{
        size_t i = 0;

        while (i < length) {
                if (line[i] == '\033') {
                        while (i < length && line[i] != 'm')
                                i++;
                } else if (begins_character(line[i]) && columns-- == 0) {
                        return i;
                }
                i++;
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
