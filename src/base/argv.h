/* SPDX-License-Identifier: MIT */
/* Splits a command line into words, without a shell; and tells how much two words differ. */
#pragma once

#include "base/macro.h"

/* Words are separated by blanks. Between single quotes everything is literal; between double quotes a
 * backslash hides the meaning of `"` and `\` only; elsewhere it hides that of any character. Nothing is
 * expanded. Returns 0 with *ret_words, NULL-terminated and perhaps empty, to be freed by argv_free();
 * -EINVAL with *ret_error, a constant sentence; or -ENOMEM. */
int argv_split(const char *line, char ***ret_words, const char **ret_error);

/* Frees the words and their vector, which may be NULL. Returns NULL. */
char **argv_free(char **words);

DEFINE_CLEANUP(char **, argv_free)
#define _cleanup_argv_ _cleanup_(argv_free_pointer)

/* How many letters must be added, left out, changed or swapped with their neighbour to make b of a; case does
 * not matter. UINT_MAX where one of them has more than 63 letters. */
unsigned edit_distance(const char *a, const char *b);

/* Does a shell take it for that very word, and a program for no option? */
bool argv_is_plain(const char *word);
