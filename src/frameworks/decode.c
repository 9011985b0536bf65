/* SPDX-License-Identifier: MIT */
/* Decoders that several frameworks share; see the header. */
#include "frameworks/decode.h"
#include "base/printable.h"
#include "wire/json.h"
#include <stdio.h>

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

/* Returns the digits after a decimal point as microseconds; finer digits are dropped. Moves *text behind the
 * digits. */
static unsigned decode_fraction(const char **text, const char *end)
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

char *decode_key(const char *namespace, const char *name, const char *suffix)
{
        bool prefixed = namespace && *namespace;
        char *key;

        if (asprintf(&key, "%s%s%s%s%s", prefixed ? namespace : "", prefixed ? ":" : "", name,
                     suffix ? ":" : "", suffix ? suffix : "") < 0)
                return NULL;
        return key;
}

char *decode_host_pattern(const char *host)
{
        char *pattern = malloc(2 * strlen(host) + sizeof(":*"));
        char *out = pattern;

        if (!pattern)
                return NULL;
        for (; *host; host++) {
                if (strchr("*?[]^-\\", *host))
                        *out++ = '\\';
                *out++ = *host;
        }
        memcpy(out, ":*", sizeof(":*"));
        return pattern;
}

/* Reads the character `before`, '\0' for none, then a number of exactly this many digits and at most max.
 * Moves *text behind it. */
static bool take_number(const char **text, char before, size_t digits, unsigned max, unsigned *ret)
{
        unsigned value = 0;

        if (before != '\0' && *(*text)++ != before)
                return false;
        for (; digits > 0; digits--, (*text)++) {
                if (**text < '0' || **text > '9')
                        return false;
                value = 10 * value + (unsigned)(**text - '0');
        }
        *ret = value;
        return value <= max;
}

/* Days since 1970 in the Gregorian calendar. The year starts in March so that the leap day is its last
 * day. */
static uint64_t days_of(unsigned year, unsigned month, unsigned day)
{
        unsigned y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;

        return (uint64_t)365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

/* Reads the offset from UTC in minutes. Fails if any text follows. */
static bool take_zone(const char *text, int *ret)
{
        bool behind = text[0] == '-';
        unsigned hours = 0, minutes = 0;

        if (text[0] == 'Z')
                text++;
        else if (text[0] != '\0' && (!take_number(&text, behind ? '-' : '+', 2, 23, &hours) ||
                                     !take_number(&text, ':', 2, 59, &minutes)))
                return false;
        *ret = (behind ? -1 : 1) * (int)(hours * 60 + minutes);
        return text[0] == '\0';
}

bool decode_iso8601(const struct field *field, uint64_t *ret_usec)
{
        char copy[40];
        const char *at = copy;
        unsigned year, month, day, hour, minute, second;
        int zone;

        if (!field->text || field->len >= sizeof(copy) || memchr(field->text, '\0', field->len))
                return false;
        memcpy(copy, field->text, field->len);
        copy[field->len] = '\0';
        if (!take_number(&at, '\0', 4, 9999, &year) || !take_number(&at, '-', 2, 12, &month) ||
            !take_number(&at, '-', 2, 31, &day) || !take_number(&at, 'T', 2, 23, &hour) ||
            !take_number(&at, ':', 2, 59, &minute) || !take_number(&at, ':', 2, 60, &second) || year < 1970 ||
            month < 1 || day < 1)
                return false;
        unsigned usec = 0;
        if (*at == '.') {
                at++;
                usec = decode_fraction(&at, copy + field->len);
        }
        if (!take_zone(at, &zone))
                return false;
        int64_t minutes = (int64_t)((days_of(year, month, day) * 24 + hour) * 60 + minute) - zone;
        if (minutes < 0)
                return false;
        *ret_usec = (uint64_t)minutes * USEC_PER_MIN + second * USEC_PER_SEC + usec;
        return true;
}

int decode_job(const char *text, size_t len, json_t **ret)
{
        /* Sidekiq and Resque refuse arguments nested deeper than 100 themselves. */
        static const struct json_bounds bounds = {
                .bytes = JOB_ENTRY_MAX, .values = JOB_ENTRY_MAX / 2, .depth = 128};
        _cleanup_json_ json_t *job = NULL;

        /* Numbers in the arguments may exceed C integers, and strings may contain NULs. */
        int r = json_load(&bounds, text, len, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &job);
        if (r < 0)
                return r;
        if (!json_is_object(job))
                return -EINVAL;
        *ret = TAKE_PTR(job);
        return 0;
}

static bool decode_number(const struct field *field, unsigned long long max, unsigned long long *ret)
{
        return field->text && decode_count(field->text, field->len, max, ret);
}

struct worker_outcomes decode_outcomes(const struct field *processed, const struct field *failed)
{
        unsigned long long n_processed, n_failed;

        if (!decode_number(processed, WORKER_PROCESSED_MAX, &n_processed) ||
            !decode_number(failed, n_processed, &n_failed))
                return (struct worker_outcomes){0};
        return (struct worker_outcomes){.known = true, .processed = n_processed, .failed = n_failed};
}

struct worker_outcomes decode_outcomes_apart(const struct field *succeeded, const struct field *failed)
{
        unsigned long long n_succeeded = 0, n_failed = 0;

        if ((succeeded->text && !decode_number(succeeded, WORKER_PROCESSED_MAX / 2, &n_succeeded)) ||
            (failed->text && !decode_number(failed, WORKER_PROCESSED_MAX / 2, &n_failed)))
                return (struct worker_outcomes){0};
        return (struct worker_outcomes){
                .known = true, .processed = n_succeeded + n_failed, .failed = n_failed};
}

void decode_outcomes_class(const struct field *class, const struct field *failures,
                           struct worker_outcomes *outcomes)
{
        unsigned long long n;

        if (!class->text || class->len == 0 || !decode_number(failures, outcomes->failed, &n) || n == 0)
                return;
        size_t length = MIN(class->len, sizeof(outcomes->class) - 1);
        memcpy(outcomes->class, class->text, length);
        outcomes->class[length] = '\0';
        printable_replace(outcomes->class, length, false);
        outcomes->class_failed = n;
}
