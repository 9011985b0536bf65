/* SPDX-License-Identifier: MIT */
/* Readiness for probes, judged by a reply to GetStatus. */
#pragma once

#include "wire/json.h"

/* Lists why sqmgr is not ready, given a reply to GetStatus (null: no reply). The list has one sentence for
 * each running fleet with fewer active workers than its count. Another sentence is added if sqmgr is shutting
 * down or status is invalid. An empty list means ready. A fleet that its operator quieted, stopped, drained
 * or scaled to 0 lacks nothing.
 *
 * The caller owns the result; NULL if memory is short. */
json_t *ready_lacks(const json_t *status);
