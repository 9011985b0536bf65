/* SPDX-License-Identifier: MIT */
/* Renders the model as text for Prometheus. */
#pragma once

#include "base/usec.h"
#include "daemon/api/status.h"

struct tick_totals;

/* Returns the text, to be freed, or NULL where memory is short. */
char *metrics_render(const struct status_info *info, const struct tick_totals *ticks,
                     const struct world *world, usec_t now);
