/* SPDX-License-Identifier: MIT */
/* Merges the metrics of several instances, as Prometheus text 0.0.4 or OpenMetrics 1.0. No I/O. */
#pragma once

#include "web/http_counts.h"
#include "web/instances.h"

enum metrics_format {
        METRICS_TEXT,
        METRICS_OPEN,
        _METRICS_FORMAT_MAX,
};

/* The value of Content-Type. */
const char *metrics_type(enum metrics_format value);

/* The format for an Accept header, which may be NULL. */
enum metrics_format metrics_negotiate(const char *accept);

/* Writes each family once, followed by all its samples. With several instances, samples of instances get the
 * label `socket`. Invalid lines are left out. now: monotonic clock. The caller frees *ret. Returns 0 or
 * -ENOMEM. */
int metrics_merge(const struct instances *instances, usec_t now, const struct http_counts *self,
                  enum metrics_format format, char **ret, size_t *ret_size);
