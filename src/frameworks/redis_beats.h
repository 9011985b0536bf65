/* SPDX-License-Identifier: MIT */
/* Reads heartbeats from one Redis, all in one round trip a look. What other hosts do costs next to nothing.
 */
#pragma once

#include "frameworks/beats.h"
#include "frameworks/heartbeat_format.h"
#include "io/redis.h"

/* redis, format and ops must outlive the beats; namespace is copied, NULL or "": none. Returns 0 with *ret to
 * be freed by beats_free(), or -ENOMEM. */
int redis_beats_new(struct redis *redis, const struct beats_format *format, const char *namespace,
                    const struct beats_ops *ops, void *userdata, struct beats **ret);
