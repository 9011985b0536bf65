/* SPDX-License-Identifier: MIT */
/* The metrics of several instances, and those of sqmgr-web itself. No I/O. */
#pragma once

#include "web/http.h"
#include "web/instances.h"
#include "wire/metrics.h"

enum metrics_format {
        METRICS_TEXT, /* Prometheus text 0.0.4 */
        METRICS_OPEN, /* OpenMetrics 1.0 */
        _METRICS_FORMAT_MAX,
};

/* The value of Content-Type. */
const char *metrics_type(enum metrics_format value);

/* The format for an Accept header, which may be NULL. */
enum metrics_format metrics_negotiate(const char *accept);

/* Formats the metrics of all instances and of sqmgr-web; families of the same name become one, and lines that
 * are no metric are left out. With several instances, samples of instances get the label `socket`. now:
 * monotonic clock. The caller frees *ret. Returns 0 or -ENOMEM. */
int metrics_merge(const struct instances *instances, usec_t now, const struct http_counts *self,
                  enum metrics_format format, char **ret, size_t *ret_size);
