/* SPDX-License-Identifier: MIT */
/* Metrics as data, and the only code that writes them as text for Prometheus. No I/O. */
#pragma once

#include "wire/json.h"

/* Collects families: a list of MetricFamily, as org.sqmgr.Control.varlink describes it. */
struct metrics {
        json_t *families;        /* owned */
        json_t *labels, *values; /* of the last family; borrowed */
        bool failed;             /* memory was short */
};

/* Returns an empty collection, to be ended by metrics_end(). */
struct metrics metrics_begin(void);
/* Returns the list, owned by the caller, or NULL when memory was short. */
json_t *metrics_end(struct metrics *metrics);

/* Starts a family; the samples that follow belong to it. type: "gauge", "counter" or "summary". */
void metrics_family(struct metrics *metrics, const char *name, const char *type, const char *help);
/* Adds a sample. labels: pairs of name and value, terminated by NULL; or NULL for none. All samples of a
 * family have the same names of labels, in the same order; a label with the value "" is left out of the text.
 * A value may be any bytes. In a summary, samples alternate: a sum, then the number of observations. */
void metrics_sample(struct metrics *metrics, double value, const char *const *labels);
#define METRICS_SAMPLE(metrics, value, ...)                                                                  \
        metrics_sample(metrics, value, (const char *const[]){__VA_ARGS__, NULL})

enum metrics_format {
        METRICS_TEXT, /* Prometheus text 0.0.4 */
        METRICS_OPEN, /* OpenMetrics 1.0 */
        _METRICS_FORMAT_MAX,
};

struct metrics_source {
        json_t *families;   /* borrowed; NULL: none. What is not a MetricFamily is left out. */
        const char *socket; /* the value of a further label `socket`; NULL: no such label */
};

/* Formats the families of all sources; families of the same name become one. The caller frees *ret. Returns 0
 * or -ENOMEM. */
int metrics_print(const struct metrics_source *sources, size_t n, enum metrics_format format, char **ret,
                  size_t *ret_size);
