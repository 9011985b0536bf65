/* SPDX-License-Identifier: MIT */
/* Renders the model as text for Prometheus. */
#pragma once

#include "base/usec.h"
#include "daemon/api/status.h"

struct metrics; /* of one rendering */
struct tick_totals;

/* Returns the text, to be freed, or NULL where memory is short. */
char *metrics_render(const struct status_info *info, const struct tick_totals *ticks, usec_t now);

/* For subsystems, which add samples of their own: */

const struct world *metrics_world(const struct metrics *metrics);
/* What the samples that follow are of. */
void metrics_family(struct metrics *metrics, const char *name, const char *type, const char *help);
/* labels: a name and a value each, and NULL; or NULL for none. */
void metrics_sample(const struct metrics *metrics, const char *name, double value, const char *const *labels);
#define METRICS_SAMPLE(metrics, name, value, ...)                                                            \
        metrics_sample(metrics, name, value, (const char *const[]){__VA_ARGS__})
