/* SPDX-License-Identifier: MIT */
/* Puts the metrics of several instances together, as text 0.0.4 of Prometheus or as OpenMetrics 1.0. No I/O.
 */
#pragma once

#include "web/http_counts.h"
#include "web/instances.h"

enum metrics_format {
        METRICS_TEXT,
        METRICS_OPEN,
        _METRICS_FORMAT_MAX,
};

/* The media type, for a Content-Type. */
const char *metrics_type(enum metrics_format value);

/* What an Accept header asks for; it may be NULL. */
enum metrics_format metrics_negotiate(const char *accept);

/* Each family stands once, all its samples behind it. Where there are several instances each sample of theirs
 * has the label `socket`. A line that is not of the format is left out. now: of the monotonic clock. *ret is
 * to be freed. Returns 0 or -ENOMEM. */
int metrics_merge(const struct instances *instances, usec_t now, const struct http_counts *self,
                  enum metrics_format format, char **ret, size_t *ret_size);
