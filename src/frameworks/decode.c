/* SPDX-License-Identifier: MIT */
/* Decoders that several frameworks share; see the header. */
#include "frameworks/decode.h"
#include "base/macro.h"
#include <string.h>

#define HOST_MAX 255

bool decode_is_host(const char *text, size_t len)
{
        return len > 0 && len <= HOST_MAX && !memchr(text, ':', len) && !memchr(text, '\0', len);
}

const char *decode_host_pid(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid)
{
        const char *colon = memchr(text, ':', len), *end = text + len;
        const char *second = colon ? memchr(colon + 1, ':', (size_t)(end - colon - 1)) : NULL;

        if (!second || second + 1 == end || !decode_is_host(text, (size_t)(colon - text)) ||
            !decode_pid(colon + 1, (size_t)(second - colon - 1), ret_pid))
                return NULL;
        *ret_host_len = (size_t)(colon - text);
        return second + 1;
}

bool decode_identity(const char *text, size_t len, bool (*is_rest)(const char *rest, size_t len),
                     size_t *ret_host_len, pid_t *ret_pid)
{
        size_t host_len;
        pid_t pid;
        const char *rest = decode_host_pid(text, len, &host_len, &pid);

        if (!rest || !is_rest(rest, (size_t)(text + len - rest)))
                return false;
        *ret_host_len = host_len;
        *ret_pid = pid;
        return true;
}

unsigned decode_fraction(const char **text, const char *end)
{
        unsigned usec = 0, n = 0, digit;

        for (; *text < end && (digit = (unsigned)**text - '0') <= 9; (*text)++, n++)
                if (n < 6)
                        usec = usec * 10 + digit;
        for (; n < 6; n++)
                usec *= 10;
        return usec;
}

bool decode_span(const char *text, size_t len, uint64_t *ret_usec)
{
        const char *end = text + len, *dot = memchr(text, '.', len), *fraction = dot ? dot + 1 : end;
        unsigned long long seconds;

        /* Up to the year 5138, so that the count of microseconds cannot overflow. */
        if (!decode_count(text, dot ? (size_t)(dot - text) : len, 99999999999ULL, &seconds) ||
            (dot && fraction == end))
                return false;
        unsigned usec = decode_fraction(&fraction, end);
        if (fraction != end)
                return false;
        *ret_usec = seconds * USEC_PER_SEC + usec;
        return true;
}

bool decode_seconds(const char *text, size_t len, uint64_t *ret_usec)
{
        uint64_t usec;

        if (!decode_span(text, len, &usec) || usec < USEC_PER_SEC)
                return false;
        *ret_usec = usec;
        return true;
}
