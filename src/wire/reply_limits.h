/* SPDX-License-Identifier: MIT */
/* Limits on the replies of sqmgr. A reply beyond these limits is refused, so an instance of another user
 * cannot make sqmgrctl or sqmgr-web use memory or time without bound. No I/O. */
#pragma once

#include "base/macro.h"
#include <jansson.h>

/* In the order of sending if several are due. */
enum instance_query {
        INSTANCE_QUERY_STATUS,
        INSTANCE_QUERY_EVENTS,
        INSTANCE_QUERY_QUEUES,
        INSTANCE_QUERY_METRICS,
        _INSTANCE_QUERY_MAX,
        /* Any call of sqmgrctl but GetMetrics. */
        INSTANCE_QUERY_TERMINAL = _INSTANCE_QUERY_MAX,
};

struct reply_limits {
        size_t bytes;        /* of the whole reply */
        size_t values;       /* numbers, strings, arrays and so on */
        size_t containers;   /* objects and arrays among the values: the largest in memory */
        size_t string_bytes; /* of each string, as written in JSON */
        size_t escaped;      /* characters of all strings that take five to six times as much on the page */
};

extern const struct reply_limits reply_limits[_INSTANCE_QUERY_MAX + 1];

#define REPLY_DEPTH_MAX       32
#define REPLY_FLEETS_MAX      1000
#define REPLY_WORKERS_MAX     10000 /* of all fleets together */
#define REPLY_NAME_MAX        256   /* bytes of the name of a fleet or worker, which the page repeats */
#define REPLY_EVENTS_MAX      1000
#define REPLY_EVENT_BYTES_MAX ((size_t)16 * 1024)
#define REPLY_METRICS_MAX     200000 /* lines */

#define REPLY_REASON_MAX 128

/* Checks a reply before it is parsed: parsing multiplies its size. text ends with a NUL after size bytes.
 * Returns true if the reply is within the limits. Otherwise reason says what is too much. */
bool reply_limits_scan(enum instance_query query, const char *text, size_t size,
                       char reason[static REPLY_REASON_MAX]);
/* Checks the parameters of a reply, which must have passed reply_limits_scan(). Returns as that. */
bool reply_limits_check(enum instance_query query, const json_t *answer,
                        char reason[static REPLY_REASON_MAX]);
