/* SPDX-License-Identifier: MIT */
/* Heartbeats of workers without Redis: derived from facts on this machine. */
#pragma once

#include "daemon/runtime/runtime.h"

/* Creates the source for runtime->local. Returns 0 with *ret, to be freed with heartbeats_free(), or
 * -ENOMEM. */
int local_heartbeats_new(struct heartbeats **ret);
