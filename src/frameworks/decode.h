/* SPDX-License-Identifier: MIT */
/* What the frameworks' heartbeats have in common: keys, and how numbers and times are written. Pure. */
#pragma once

#include "base/field.h"
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* `NAMESPACE:NAME`, and `:SUFFIX` where suffix is not NULL; a namespace of NULL or "" is none. To be freed;
 * NULL: out of memory. */
char *decode_key(const char *namespace, const char *name, const char *suffix);

/* The pattern of SSCAN for what begins with this host and a colon, its special characters escaped. To be
 * freed; NULL: out of memory. */
char *decode_host_pattern(const char *host);

/* A decimal number of len digits, at most max, without needless zeros in front. Inline, as the next, since
 * each beat of each worker is decoded by them. */
static inline bool decode_count(const char *text, size_t len, unsigned long long max, unsigned long long *ret)
{
        unsigned long long value = 0;

        if (len == 0 || len > 18 || (len > 1 && text[0] == '0'))
                return false;
        for (const char *end = text + len; text < end; text++) {
                unsigned digit = (unsigned)*text - '0';

                if (digit > 9)
                        return false;
                value = value * 10 + digit;
        }
        if (value > max)
                return false;
        *ret = value;
        return true;
}

/* A pid, which 0 is not. */
static inline bool decode_pid(const char *text, size_t len, pid_t *ret)
{
        unsigned long long pid;

        if (!decode_count(text, len, INT_MAX, &pid) || pid == 0)
                return false;
        *ret = (pid_t)pid;
        return true;
}

/* Could be the name of a host: none has a colon in it, so that `HOST:PID:REST` has one reading. */
bool decode_is_host(const char *text, size_t len);
/* Takes `HOST:PID:REST` apart. Returns the rest, which is not empty; or NULL, with nothing else changed. */
const char *decode_host_pid(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);

/* Epoch seconds with a fraction (`1795238801.0820885`) or without, to microseconds. */
bool decode_seconds(const char *text, size_t len, uint64_t *ret_usec);

/* `2026-11-22T10:45:09.123456Z`, to microseconds since 1970: with a fraction or without, and `Z`, `+01:00` or
 * nothing, which is UTC too, behind it. */
bool decode_iso8601(const struct field *field, uint64_t *ret_usec);

/* There is such a field, and it is this text. */
static inline bool decode_field_is(const struct field *field, const char *text)
{
        return field->text && field->len == strlen(text) && memcmp(field->text, text, field->len) == 0;
}
