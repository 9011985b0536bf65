/* SPDX-License-Identifier: MIT */
/* Readiness for probes, as a reply to GetStatus says. */
#pragma once

#include "wire/json.h"

/* Lists why sqmgr is not ready: the summaries of the problems in a reply to GetStatus that say so (null: no
 * reply). An empty list means ready. A fleet that its operator quieted, stopped, drained or scaled to 0 lacks
 * nothing.
 *
 * The caller owns the result; NULL if memory is short. */
json_t *ready_lacks(const json_t *status);
