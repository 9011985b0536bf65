/* SPDX-License-Identifier: MIT */
/* Text: how wide it is on a terminal, where its lines are broken, and what is appended to it. */
#pragma once

#include "base/macro.h"
#include <stdio.h>

/* The columns that text takes. */
int text_width(const char *text);
/* The bytes of the line's beginning that take no more than that many columns; colours (ESC [ ... m) take
 * none. */
size_t text_fitting(const char *line, size_t length, int columns);
/* Prints text, filled up with blanks to so many columns. */
void text_print_cell(FILE *out, const char *text, int width);
/* Prints text and a newline, broken between words where it is too long for that many columns (0: it never
 * is), each line after the first indented by so much. Its first line begins in the column `used`. */
void text_print_wrapped(FILE *out, const char *text, int used, int indent, int columns);

/* Appends to text, which has room for size bytes with its NUL: what does not fit is cut off. */
void text_append(char *text, size_t size, const char *format, ...) _printf_(3, 4);
