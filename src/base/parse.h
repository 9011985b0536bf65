/* SPDX-License-Identifier: MIT */
/* Reads numbers, durations, sizes, modes and signals strictly, and writes durations and sizes as text. */
#pragma once

#include "base/usec.h"
#include <stddef.h>
#include <sys/types.h>

/* All parsers take the whole text or none of it, blanks not skipped unless said. They return 0, -EINVAL where
 * it has another form, or -ERANGE where it is out of bounds or does not fit. */

int parse_unsigned(const char *text, uint64_t min, uint64_t max, uint64_t *ret);
int parse_signed(const char *text, int64_t min, int64_t max, int64_t *ret);

/* Octal digits: `0660`. */
int parse_mode(const char *text, mode_t max, mode_t *ret);

#define PARSE_DURATION_HINT "a number with ms, s, min, h or d (10s, 1h 30min)"

/* Numbers with units, the unit always written: `500ms`, `10s`, `5min`, `2h`, `1d`, or several, each unit
 * smaller than the one before: `1h 30min`. Microseconds. */
int parse_duration(const char *text, usec_t *ret_usec);

#define PARSE_SIZE_HINT "a number of bytes, also with K, M, G or T (512M), or a share of the memory (25%)"

/* Bytes: `4096`, `64K`, `512M`, `1G`, `2T` (powers of 1024, of either case), or `25%` of total_bytes, from 1%
 * to 100%. -ENODATA: a share, while total_bytes is 0, that is not known. */
int parse_size(const char *text, uint64_t total_bytes, uint64_t *ret_bytes);

/* A signal's name, `TERM` or `SIGTERM`, of either case; realtime signals have none. */
int parse_signal(const char *text, int *ret);

#define FORMAT_MAX 32

/* For people, rounded down: `350ms`, `1.5s`, `12min`, `1h 5min`, `2d 3h`, `512M`, `1.2G`. size should be
 * FORMAT_MAX. They return text. */
const char *format_duration(usec_t usec, char *text, size_t size);
const char *format_size(uint64_t bytes, char *text, size_t size);

/* The shortest text that the parsers above read as just this; of a duration, what is below 1 ms is lost. */
const char *format_duration_exact(usec_t usec, char *text, size_t size);
const char *format_size_exact(uint64_t bytes, char *text, size_t size);
