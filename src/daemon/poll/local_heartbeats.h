/* SPDX-License-Identifier: MIT */
/* Heartbeats of workers that need no Redis: what this machine itself shows of them. */
#pragma once

#include "daemon/runtime/runtime.h"

/* For crew->local, of which it is freed by heartbeats_free(). Returns 0 or -ENOMEM. */
int local_heartbeats_new(struct heartbeats **ret);
