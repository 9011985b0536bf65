/* SPDX-License-Identifier: MIT */
/* A default limit plus limits by name, as one value of the config file: `1000 low=50000 mail=none`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum limits_unit {
        LIMITS_COUNT,
        LIMITS_DURATION, /* microseconds */
};

/* Returns 0, or -EINVAL with a sentence in why that describes the error. */
int limits_check(const char *text, enum limits_unit unit, char *why, size_t size);

/* Returns true if text, already checked, sets any limit. */
bool limits_any(const char *text, enum limits_unit unit);

/* Writes the i-th name that has a limit in text, already checked; `none` is no limit. Returns false if there
 * are no more names. limits_check() refuses names that would not fit. */
#define LIMITS_NAME_MAX 200
bool limits_name(const char *text, enum limits_unit unit, size_t i, char name[static LIMITS_NAME_MAX]);

/* Returns the limit for name in text, already checked; 0: none. A name without its own limit, and "", get the
 * default limit. */
uint64_t limits_find(const char *text, enum limits_unit unit, const char *name);
