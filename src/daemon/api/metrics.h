/* SPDX-License-Identifier: MIT */
/* Renders the model as text for Prometheus. */
#pragma once

#include "daemon/api/status.h"
#include "model/pass.h"
#include "model/world.h"

/* Returns the text, to be freed, or NULL where memory is short. */
char *metrics_render(const struct status_info *info, const struct tick_totals *ticks,
                     const struct world *world, usec_t now);
