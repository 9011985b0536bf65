/* SPDX-License-Identifier: MIT */
/* The page, as HTML. No I/O, no clock. */
#include "web/page.h"
#include <stdio.h>

static void put_text(FILE *out, const char *text)
{
        for (; *text != '\0'; text++) {
                switch (*text) {
                case '&':
                        fputs("&amp;", out);
                        break;
                case '<':
                        fputs("&lt;", out);
                        break;
                case '>':
                        fputs("&gt;", out);
                        break;
                default:
                        fputc(*text, out);
                }
        }
}

int page_render(enum page_part part, const json_t *status, const json_t *events _unused_, usec_t now _unused_,
                char **ret, size_t *ret_size)
{
        _cleanup_free_ char *document = json_dumps(status, JSON_INDENT(1));
        char *text = NULL;
        size_t size = 0;

        if (!document)
                return -ENOMEM;
        FILE *out = open_memstream(&text, &size);
        if (!out)
                return -ENOMEM;
        if (part == PAGE_WHOLE)
                fputs("<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>sqmgr</title>\n", out);
        fputs("<pre>", out);
        put_text(out, document);
        fputs("</pre>\n", out);
        bool failed = ferror(out) != 0;
        if (fclose(out) != 0 || failed) {
                free(text);
                return -ENOMEM;
        }
        *ret = text;
        *ret_size = size;
        return 0;
}

const char *page_csp(void)
{
        return "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
}
