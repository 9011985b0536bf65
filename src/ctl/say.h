/* SPDX-License-Identifier: MIT */
/* Sentences for people, on a terminal broken between words. */
#pragma once

#include "base/macro.h"

/* Prints a sentence on standard output. */
void say_line(const char *format, ...) _printf_(1, 2);
/* Prints `sqmgrctl: ` and the sentence to stderr, or where say_errors_to() wants it. Returns code. */
int say_error(int code, const char *format, ...) _printf_(2, 3);
/* A further line of the same. */
void say_error_line(const char *line);
/* From now on only the last error is kept, in text, which has size bytes; NULL: they are printed again. */
void say_errors_to(char *text, size_t size);
