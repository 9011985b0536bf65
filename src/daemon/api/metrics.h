/* SPDX-License-Identifier: MIT */
/* Renders the model as Prometheus text. */
#pragma once

#include "base/usec.h"
#include "daemon/api/status.h"

struct metrics; /* state of one rendering */
struct tick_totals;

/* Returns the text, to be freed, or NULL when memory is short. */
char *metrics_render(const struct status_info *info, const struct tick_totals *ticks, usec_t now);

/* For subsystems, which add samples of their own: */

const struct world *metrics_world(const struct metrics *metrics);
/* Starts a metric family; the samples that follow belong to it. */
void metrics_family(struct metrics *metrics, const char *name, const char *type, const char *help);
/* Adds a sample. labels: pairs of name and value, terminated by NULL; or NULL for none. */
void metrics_sample(const struct metrics *metrics, const char *name, double value, const char *const *labels);
#define METRICS_SAMPLE(metrics, name, value, ...)                                                            \
        metrics_sample(metrics, name, value, (const char *const[]){__VA_ARGS__})
