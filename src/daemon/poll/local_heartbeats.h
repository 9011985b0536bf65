/* SPDX-License-Identifier: MIT */
/* Heartbeats of workers without Redis: derived from facts on this machine. */
#pragma once

#include "daemon/runtime/runtime.h"

/* Creates runtime->local, to be freed with heartbeats_free(). Returns 0 or -ENOMEM. */
int local_heartbeats_new(struct heartbeats **ret);
