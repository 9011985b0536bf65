/* SPDX-License-Identifier: MIT */
/* What was, in rings of fixed size. No I/O, no clock. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include <jansson.h>

enum history_range {
        HISTORY_HOUR,
        HISTORY_DAY,
        HISTORY_MONTH,
        _HISTORY_RANGE_MAX,
};

struct history;

struct history_sample {
        const char *socket, *fleet;
        double memory_bytes, active, busy, latency_seconds; /* NAN: not known */
};

/* Returns 0 or -ENOMEM. */
int history_new(struct history **ret);
/* Returns NULL, as history may be. */
struct history *history_free(struct history *history);

/* What is at that moment. */
void history_add(struct history *history, usec_t realtime, const struct history_sample *samples, size_t n);
/* What happened then. */
void history_mark(struct history *history, usec_t realtime, const char *socket, const char *fleet,
                  const char *event, const char *text);

/* The document of /api/history; NULL where memory is short. */
json_t *history_json(const struct history *history, enum history_range range, usec_t now);
