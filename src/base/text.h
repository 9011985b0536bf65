/* SPDX-License-Identifier: MIT */
/* Text on a terminal: its width, line wrapping and padding; and bounded appending. */
#pragma once

#include "base/macro.h"
#include <stdio.h>

/* Returns the width of text in columns. */
int text_width(const char *text);
/* Returns how many bytes of the start of line fit into that many columns. Colors (ESC [ ... m) take no
 * columns. */
size_t text_fitting(const char *line, size_t length, int columns);
/* Prints text, padded with blanks to width columns. */
void text_print_cell(FILE *out, const char *text, int width);
/* Prints text and a newline, wrapped between words at that many columns (0: never). Each line after the first
 * is indented by indent columns. The first line begins in the column `used`. */
void text_print_wrapped(FILE *out, const char *text, int used, int indent, int columns);

/* Formats a text that the caller frees. Returns NULL if memory is short. */
char *text_format(const char *format, ...) _printf_(1, 2);

/* Copies a text that may be NULL to *ret, which the caller frees. Returns 0 or -ENOMEM. */
int text_copy(const char *text, char **ret);

/* Appends to text, a buffer of size bytes including the NUL. Truncates what does not fit. */
void text_append(char *text, size_t size, const char *format, ...) _printf_(3, 4);
