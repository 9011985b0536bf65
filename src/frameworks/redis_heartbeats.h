/* SPDX-License-Identifier: MIT */
/* Reads heartbeats from one Redis, all in one round trip a look. What other hosts do costs next to nothing.
 */
#pragma once

#include "frameworks/heartbeat_format.h"
#include "frameworks/heartbeats.h"
#include "io/redis.h"

/* redis, format and ops must outlive the beats; namespace is copied, NULL or "": none. Returns 0 with *ret to
 * be freed by heartbeats_free(), or -ENOMEM. */
int redis_heartbeats_new(struct redis *redis, const struct heartbeat_format *format, const char *namespace,
                         const struct heartbeats_ops *ops, void *userdata, struct heartbeats **ret);
