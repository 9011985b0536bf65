/* SPDX-License-Identifier: MIT */
/* Sanitizes untrusted text for logs, terminals and JSON. */
#pragma once

#include "base/macro.h"

/* Decodes the UTF-8 character at text, which has length bytes (at least 1). Returns the number of bytes
 * consumed. Returns 0 with the first byte in *ret_character if the character is invalid: overlong, a
 * surrogate, or beyond U+10FFFF included. */
size_t printable_utf8(const char *text, size_t length, uint32_t *ret_character);

/* Removes terminal control sequences in place: ESC [, the parameters and the final letter. Returns the new
 * length. */
size_t printable_drop_colours(char *text, size_t length);

/* Replaces bytes in place: a tab with a space, any other control character and each byte that is not UTF-8
 * with '?'. Newlines stay if keep_newlines. */
void printable_replace(char *text, size_t length, bool keep_newlines);
/* Returns a copy in which that is done, which the caller frees; NULL: out of memory. */
char *printable_copy(const char *text, bool keep_newlines);
