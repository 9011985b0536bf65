/* SPDX-License-Identifier: MIT */
/* How the records of RQ's workers stand in Redis, for the engine that reads heartbeats. RQ knows no
 * namespaces. */
#pragma once

#include "frameworks/redis_beats.h"

extern const struct beats_format rq_beats;
