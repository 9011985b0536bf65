/* SPDX-License-Identifier: MIT */
/* Reads heartbeats from one Redis, with all commands of a poll in one batch. The cost hardly depends on
 * the activity of other hosts. */
#pragma once

#include "frameworks/heartbeat_format.h"
#include "frameworks/heartbeats.h"
#include "redis/redis.h"

/* redis, format and ops must outlive the object; namespace is copied; NULL or "": none. Returns 0 with
 * *ret, which the caller frees with heartbeats_free(), or -ENOMEM. */
int redis_heartbeats_new(struct redis *redis, const struct heartbeat_format *format, const char *namespace,
                         const struct heartbeats_ops *ops, void *userdata, struct heartbeats **ret);
