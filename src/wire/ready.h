/* SPDX-License-Identifier: MIT */
/* Derives the readiness for probes from a reply to GetStatus. */
#pragma once

#include "wire/json.h"

/* Lists why sqmgr is not ready: the summaries of the problems with "unready" in a reply to GetStatus (NULL or
 * null: no reply, which is not ready either). An empty list means ready. A fleet that its operator quieted,
 * stopped, drained or scaled to 0 counts as ready.
 *
 * The caller owns the list; NULL if memory is short. */
json_t *ready_lacks(const json_t *status);
