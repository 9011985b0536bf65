/* SPDX-License-Identifier: MIT */
/* How the heartbeats of sqmgr-heartbeat(7) stand in Redis, for the engine that reads them. */
#pragma once

#include "frameworks/redis_beats.h"

extern const struct beats_format native_beats;
