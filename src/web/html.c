/* SPDX-License-Identifier: MIT */
/* Writes HTML. Markup comes only from format strings in the source; all values are escaped text. */
#include "web/html.h"
#include "base/printable.h"
#include <stdarg.h>
#include <string.h>

/* Returns true for control characters, invalid code points, and characters that change the text direction.
 * With the latter, a name could change how the text after it reads. */
static bool is_refused(uint32_t code)
{
        return (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7f && code < 0xa0) ||
               (code & 0xfffe) == 0xfffe || (code >= 0xfdd0 && code <= 0xfdef) || code == 0x61c ||
               (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
               (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
}

static void put_character(FILE *out, const char *text, size_t size)
{
        static const char *const escaped[] = {
                ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;",
        };
        unsigned char first = (unsigned char)text[0];

        if (first < ELEMENTSOF(escaped) && escaped[first])
                fputs(escaped[first], out);
        else
                fwrite(text, 1, size, out);
}

static void put_text(FILE *out, const char *text)
{
        size_t left = strnlen(text, HTML_TEXT_MAX + 1);
        bool cut = left > HTML_TEXT_MAX;

        left = MIN(left, HTML_TEXT_MAX);
        while (left > 0) {
                uint32_t code;
                size_t size = printable_utf8(text, left, &code), taken = size > 0 ? size : 1;

                /* The cut has split the last character. */
                if (size == 0 && cut && left < 4)
                        break;
                if (size == 0 || is_refused(code))
                        fputc('?', out);
                else
                        put_character(out, text, size);
                text += taken;
                left -= taken;
        }
        if (cut)
                fputs(" ...", out);
}

/* Writes the conversion after a '%'. Returns the number of bytes that it takes in the format. */
static size_t put_value(FILE *out, const char *conversion, va_list *values)
{
        const char *text;

        if (strncmp(conversion, "lld", 3) == 0) {
                fprintf(out, "%lld", va_arg(*values, long long));
                return 3;
        }
        if (strncmp(conversion, "zu", 2) == 0) {
                fprintf(out, "%zu", va_arg(*values, size_t));
                return 2;
        }
        switch (conversion[0]) {
        case 's':
                text = va_arg(*values, const char *);
                put_text(out, text ? text : "");
                return 1;
        case 'u':
                fprintf(out, "%u", va_arg(*values, unsigned));
                return 1;
        case 'g':
                fprintf(out, "%g", va_arg(*values, double));
                return 1;
        case '%':
                fputc('%', out);
                return 1;
        default:
                /* The remaining arguments could not be read correctly. */
                abort();
        }
}

void html_print(FILE *out, const char *format, ...)
{
        va_list values;

        va_start(values, format);
        while (format[0] != '\0') {
                size_t plain = strcspn(format, "%");

                fwrite(format, 1, plain, out);
                format += plain;
                if (format[0] == '%')
                        format += 1 + put_value(out, format + 1, &values);
        }
        va_end(values);
}
