/* SPDX-License-Identifier: MIT */
/* Writes HTML. Markup comes only from format strings in the source; all values are escaped text. */
#pragma once

#include "base/macro.h"
#include <stdio.h>

/* Longer strings are cut, so that no foreign string fills a page. */
#define HTML_TEXT_MAX 4096

/* Like fprintf(), but knows only %s, %u, %lld, %zu, %g and %%, without width, flags or precision. Strings for
 * %s are escaped for elements and for attributes in double quotes. Characters that are invalid in HTML or
 * change the text direction become '?'. */
void html_print(FILE *out, const char *format, ...) _printf_(2, 3);
