/* SPDX-License-Identifier: MIT */
/* A limit for all and others for some, as one value of the config file: `1000 low=50000 mail=none`; of
 * targets `30s mailers:5min`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum limits_unit {
        LIMITS_COUNT,
        LIMITS_DURATION, /* microseconds */
        LIMITS_TARGET,   /* the same, named by a ':' in the place of a '=' */
};

/* Returns 0, or -EINVAL with what is wrong with text, a sentence, in why. */
int limits_check(const char *text, enum limits_unit unit, char *why, size_t size);

/* Does text, which has been checked, set any limit? */
bool limits_any(const char *text, enum limits_unit unit);

/* The i-th name that text, which has been checked, has a limit for, cut to LIMITS_NAME_MAX bytes. Returns
 * false where there are no more. */
#define LIMITS_NAME_MAX 200
bool limits_name(const char *text, enum limits_unit unit, size_t i, char name[static LIMITS_NAME_MAX]);

/* The limit of that name in text, which has been checked; 0: none. Name "": the limit of all others. */
uint64_t limits_find(const char *text, enum limits_unit unit, const char *name);
