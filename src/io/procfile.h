/* SPDX-License-Identifier: MIT */
/* The kernel's text files in which each line is a key and a value. */
#pragma once

#include "base/macro.h"

/* What stands behind the key at the start of a line, blanks skipped, or NULL. */
const char *procfile_value(const char *text, const char *key);

/* The same as a number of that base. Returns 0, or -ENODATA where the key or its number is missing. */
int procfile_number(const char *text, const char *key, int base, uint64_t *ret);
