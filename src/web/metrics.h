/* SPDX-License-Identifier: MIT */
/* Puts the metrics of several instances together, as text 0.0.4 of Prometheus or as OpenMetrics 1.0. No I/O.
 */
#pragma once

#include "base/macro.h"

enum metrics_format {
        METRICS_TEXT,
        METRICS_OPEN,
};

struct metrics_source {
        const char *socket;
        const char *text; /* of GetMetrics; NULL: none came */
        bool up;
        double age_seconds; /* of its last status; negative: none came */
};

/* The media type, for a Content-Type. */
const char *metrics_type(enum metrics_format format);

/* What an Accept header asks for; it may be NULL. */
enum metrics_format metrics_negotiate(const char *accept);

/* Where there are several sources each sample of theirs has the label `socket`. *ret is to be freed. Returns
 * 0 or -ENOMEM. */
int metrics_merge(const struct metrics_source *sources, size_t n, enum metrics_format format, char **ret,
                  size_t *ret_size);
