/* SPDX-License-Identifier: MIT */
/* Puts the metrics of several instances together, as text 0.0.4 of Prometheus or as OpenMetrics 1.0. No I/O.
 */
#pragma once

#include "base/macro.h"

enum metrics_format {
        METRICS_TEXT,
        METRICS_OPEN,
        _METRICS_FORMAT_MAX,
};

struct metrics_source {
        const char *socket;
        const char *text;   /* what GetMetrics replied, as text 0.0.4; NULL: nothing */
        bool up;            /* it answers */
        double age_seconds; /* of its last status; negative: none came */
};

/* Of sqmgr-web itself. */
struct metrics_self {
        unsigned connections, streams;
        uint64_t requests, refused;
};

/* The media type, for a Content-Type. */
const char *metrics_type(enum metrics_format format);

/* What an Accept header asks for; it may be NULL. */
enum metrics_format metrics_negotiate(const char *accept);

/* Each family stands once, all its samples behind it. Where there are several sources each sample of theirs
 * has the label `socket`. A line that is not of the format is left out. *ret is to be freed. Returns 0 or
 * -ENOMEM. */
int metrics_merge(const struct metrics_source *sources, size_t n, const struct metrics_self *self,
                  enum metrics_format format, char **ret, size_t *ret_size);
