/* SPDX-License-Identifier: MIT */
/* Writes HTML: markup comes from the formats of the source alone, and whatever is put into them is text. */
#pragma once

#include "base/macro.h"
#include <stdio.h>

/* Longer ones are cut: no string of foreign origin fills a page. */
#define HTML_TEXT_MAX 4096

/* As fprintf(), with %s, %u, %lld, %zu, %g and %% alone, without width, flags or precision; what %s
 * stands for is escaped, in an element as in an attribute within double quotes. Characters that no HTML may
 * have, or that change the direction of the text around them, become '?'. */
void html_print(FILE *out, const char *format, ...) _printf_(2, 3);
