/* SPDX-License-Identifier: MIT */
/* Makes text of foreign origin fit for logs, terminals and JSON. */
#pragma once

#include "base/macro.h"

/* Reads the UTF-8 character at text, which has length bytes (1 at least), and returns how many bytes it
 * takes. Returns 0 where there is none; then *ret_character is the first byte. Overlong forms, surrogates and
 * code points beyond U+10FFFF are none. */
size_t printable_utf8(const char *text, size_t length, uint32_t *ret_character);

/* Takes out of length bytes of text, in place, what colours it on a terminal: ESC [ and its parameters, up to
 * the letter that ends it. Returns the new length. */
size_t printable_drop_colours(char *text, size_t length);

/* Replaces in place, in length bytes of text: tabs by spaces; other control characters and each byte that is
 * not UTF-8 by '?'. Newlines stay where keep_newlines. */
void printable_replace(char *text, size_t length, bool keep_newlines);
