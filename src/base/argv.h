/* SPDX-License-Identifier: MIT */
/* Splits a command line into words without a shell, and measures the edit distance of two words. */
#pragma once

#include "base/macro.h"
#include <stdio.h>

/* Splits line at blanks. Single quotes make everything literal. Between double quotes a backslash escapes
 * only `"` and `\`; outside quotes a backslash escapes any character. Nothing is expanded.
 *
 * Returns 0 with *ret_words, which is NULL-terminated, may be empty, and is freed by argv_free(). Returns
 * -EINVAL with *ret_error, a constant sentence; or -ENOMEM. */
int argv_split(const char *line, char ***ret_words, const char **ret_error);

/* Frees the words and their vector; words may be NULL. Returns NULL. */
char **argv_free(char **words);

DEFINE_CLEANUP(char **, argv_free)
#define _cleanup_argv_ _cleanup_(argv_free_pointer)

/* Returns how many letters to insert, delete, replace or swap with their neighbor turn a into b, ignoring
 * case. Returns UINT_MAX if either word has more than 63 letters. */
unsigned edit_distance(const char *a, const char *b);

/* Returns true if a shell takes the word literally and a program does not take the word for an option. */
bool argv_is_plain(const char *word);

/* Writes the word for a shell, in quotes if it is not plain: no name can inject a command. */
void argv_put_quoted(FILE *out, const char *word);
