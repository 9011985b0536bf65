/* SPDX-License-Identifier: MIT */
/* Decoders that several frameworks share: keys, numbers, times, jobs and their outcomes. Pure. */
#pragma once

#include "model/worker.h"
#include <jansson.h>
#include <limits.h>
#include <string.h>

/* No process has more jobs or threads: a larger number is garbage. */
#define DECODE_COUNT_MAX 1000000
/* The limit of times by wall clocks, after the year 9999. */
#define DECODE_CLOCK_MAX_USEC (UINT64_C(300000000000) * USEC_PER_SEC)

/* Returns `NAMESPACE:NAME`, with `:SUFFIX` appended unless suffix is NULL. A namespace of NULL or "" adds
 * no prefix. The caller frees the result; NULL: out of memory. */
char *decode_key(const char *namespace, const char *name, const char *suffix);

/* Returns the SSCAN pattern for identities that begin with this host and a colon. Special characters are
 * escaped. The caller frees the result; NULL: out of memory. */
char *decode_host_pattern(const char *host);

/* Decodes a decimal number of len digits, at most max, without leading zeros. Inline, like decode_pid(),
 * because every heartbeat of every worker is decoded with both. */
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

/* Decodes a pid; 0 is rejected. */
static inline bool decode_pid(const char *text, size_t len, pid_t *ret)
{
        unsigned long long pid;

        if (!decode_count(text, len, INT_MAX, &pid) || pid == 0)
                return false;
        *ret = (pid_t)pid;
        return true;
}

/* Returns true if the text can be the host in `HOST:PID:REST`: not empty, not too long, and without NUL and
 * colon, so that the text has only one reading. The identities of some frameworks allow colons. */
bool decode_is_host(const char *text, size_t len);
/* Splits `HOST:PID:REST`. Returns REST, which points into text and is never empty; or NULL, with all outputs
 * untouched. */
const char *decode_host_pid(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);
/* Decodes `HOST:PID:REST`, of which is_rest() accepts REST. Returns false with all outputs untouched. */
bool decode_identity(const char *text, size_t len, bool (*is_rest)(const char *rest, size_t len),
                     size_t *ret_host_len, pid_t *ret_pid);

/* Decodes a number of seconds, with a fraction (`0.25`) or without, to microseconds. */
bool decode_span(const char *text, size_t len, uint64_t *ret_usec);
/* Like decode_span(), for Unix seconds (`1795238801.0820885`): the first second is rejected. */
bool decode_seconds(const char *text, size_t len, uint64_t *ret_usec);

/* Decodes `2026-11-22T10:45:09.123456Z` to microseconds since 1970. The fraction is optional. The zone is
 * `Z`, `+01:00` or absent, which means UTC. */
bool decode_iso8601(const struct field *field, uint64_t *ret_usec);

/* True if the field is present and equals this text. */
static inline bool decode_field_is(const struct field *field, const char *text)
{
        return field->text && field->len == strlen(text) && memcmp(field->text, text, field->len) == 0;
}

/* Loads a job: a JSON object from a queue or a work list. Returns 0; -EMSGSIZE if the job is longer than
 * JOB_ENTRY_MAX, has too many values or is nested too deep; -EINVAL if text is not a JSON object; or -ENOMEM.
 * The caller owns *ret. */
int decode_job(const char *text, size_t len, json_t **ret);

/* Outcomes of the jobs of a process. Values that no process can write count as missing: no heartbeat is
 * doubted because of them. */

/* processed: all jobs, failed: those of them that failed. The outcomes are unknown unless both are numbers
 * and failed is the smaller one. */
struct worker_outcomes decode_outcomes(const struct field *processed, const struct field *failed);

/* Like decode_outcomes(), for a framework that counts successful jobs, and writes a count with its first job.
 */
struct worker_outcomes decode_outcomes_apart(const struct field *succeeded, const struct field *failed);

/* Adds the job class with the most failures, unless its name or its count is invalid. */
void decode_outcomes_class(const struct field *class, const struct field *failures,
                           struct worker_outcomes *outcomes);
