/* SPDX-License-Identifier: MIT */
/* Collects the metrics of the model. */
#pragma once

#include "base/macro.h"
#include "daemon/api/status.h"
#include "wire/metrics.h"

struct tick_totals;

/* Returns a text that the caller frees; NULL: memory is short. */
char *metrics_collect(const struct status_info *info, const struct tick_totals *ticks, usec_t now);
