/* SPDX-License-Identifier: MIT */
/* Parses numbers, durations, sizes and signals strictly, and formats durations and sizes. */
#pragma once

#include "base/macro.h"

/* All parsers consume the whole text or fail. Blanks are not skipped unless stated. Parsers return 0, -EINVAL
 * if the text has another format, or -ERANGE if the value is out of bounds or overflows. After an error, *ret
 * is unchanged. */

int parse_unsigned(const char *text, uint64_t min, uint64_t max, uint64_t *ret);

#define PARSE_DURATION_HINT "a number with ms, s, min, h or d (10s, 1h 30min)"

/* Reads numbers with units, the unit being mandatory: `500ms`, `10s`, `5min`, `2h`, `1d`. Several are added
 * up, each unit smaller than the one before: `1h 30min`. The result is in microseconds. */
int parse_duration(const char *text, usec_t *ret_usec);

#define PARSE_SIZE_HINT "a number of bytes, also with K, M, G or T (512M), or a share of the memory (25%)"

/* Reads bytes: `4096`, `64K`, `512M`, `1G`, `2T` (powers of 1024, case-insensitive), or `25%` of total_bytes,
 * from 1% to 100%. Returns -ENODATA for a percentage if total_bytes is 0 (unknown). */
int parse_size(const char *text, uint64_t total_bytes, uint64_t *ret_bytes);

/* Reads a signal's name, `TERM` or `SIGTERM`, case-insensitive. Realtime signals are not supported. */
int parse_signal(const char *text, int *ret);

/* For parsers that describe an error: sets *why, unless why is NULL, to a constant sentence. Returns -EINVAL.
 */
static inline int parse_refuse(const char **why, const char *error)
{
        if (why)
                *why = error;
        return -EINVAL;
}

/* Decodes %XX in the len bytes at text. A NUL byte, which would truncate the value, is refused. Returns 0
 * with *ret, which the caller frees; -EINVAL with *why, unless why is NULL; or -ENOMEM. */
int percent_decode(const char *text, size_t len, char **ret, const char **why);

/* Returns the ending of a word that follows the number n. */
static inline const char *plural(uint64_t n)
{
        return n == 1 ? "" : "s";
}

#define FORMAT_MAX 32

/* Format for people, rounded down: `350ms`, `1.5s`, `12min`, `1h 5min`, `2d 3h`, `512M`, `1.2G`. size should
 * be FORMAT_MAX. Return text. */
const char *format_duration(usec_t usec, char *text, size_t size);
const char *format_size(uint64_t bytes, char *text, size_t size);

/* Format the shortest text from which the parsers above read the same value. A duration is rounded down to 1
 * ms. Return text. */
const char *format_duration_exact(usec_t usec, char *text, size_t size);
const char *format_size_exact(uint64_t bytes, char *text, size_t size);

/* The functions as expressions; the text is valid until the end of the enclosing block. */
#define FORMAT_DURATION(usec)       format_duration(usec, (char[FORMAT_MAX]){""}, FORMAT_MAX)
#define FORMAT_DURATION_EXACT(usec) format_duration_exact(usec, (char[FORMAT_MAX]){""}, FORMAT_MAX)
#define FORMAT_SIZE(bytes)          format_size(bytes, (char[FORMAT_MAX]){""}, FORMAT_MAX)
#define FORMAT_SIZE_EXACT(bytes)    format_size_exact(bytes, (char[FORMAT_MAX]){""}, FORMAT_MAX)
