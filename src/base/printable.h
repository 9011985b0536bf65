/* SPDX-License-Identifier: MIT */
/* Makes text of foreign origin fit for logs, terminals and JSON. */
#pragma once

#include "base/macro.h"

/* The length of the UTF-8 sequence with which text begins, or 0 where there is none; overlong forms,
 * surrogates and code points beyond U+10FFFF are none. */
size_t printable_utf8_length(const char *text, size_t length);

/* Takes out of length bytes of text, in place, what colours it on a terminal: ESC [ and its parameters, up to
 * the letter that ends it. Returns the new length. */
size_t printable_drop_colours(char *text, size_t length);

/* Replaces in place, in length bytes of text: tabs by spaces; other control characters and each byte that is
 * not UTF-8 by '?'. Newlines stay where keep_newlines. */
void printable_replace(char *text, size_t length, bool keep_newlines);
