/* SPDX-License-Identifier: MIT */
/* Writes metrics in the text format 0.0.4 of Prometheus. No I/O. */
#pragma once

#include "base/macro.h"
#include <stdio.h>

struct metrics {
        FILE *out;  /* NULL: memory was short */
        char *text; /* of out */
        size_t size;
        const char *name; /* of the last family; borrowed */
        bool is_summary;
        unsigned n_samples; /* of a summary */
        bool failed;        /* a label is missing: memory was short */
};

/* Begins a text, to be ended by metrics_end(). The object must not move. */
void metrics_begin(struct metrics *metrics);
/* The caller frees *ret. Returns 0, or -ENOMEM with *ret NULL. */
int metrics_end(struct metrics *metrics, char **ret, size_t *ret_size);

/* Starts a family; the samples that follow belong to it. name is not copied. type: "gauge", "counter" or
 * "summary". */
void metrics_family(struct metrics *metrics, const char *name, const char *type, const char *help);
/* Adds a sample. labels: pairs of name and value, terminated by NULL; or NULL for none. A label with the
 * value "" is left out. A value may be any bytes. In a summary, samples alternate: a sum, then the number of
 * observations. */
void metrics_sample(struct metrics *metrics, double value, const char *const *labels);
#define METRICS_SAMPLE(metrics, value, ...)                                                                  \
        metrics_sample(metrics, value, (const char *const[]){__VA_ARGS__, NULL})
/* Writes a label as a sample has it: name="value". Returns false if memory was short. */
bool metrics_put_label(FILE *out, const char *name, const char *value);
