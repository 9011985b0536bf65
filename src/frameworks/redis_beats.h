/* SPDX-License-Identifier: MIT */
/* Reads heartbeats from one Redis, all in one round trip a look. What other hosts do costs next to nothing.
 */
#pragma once

#include "frameworks/beats.h"
#include "frameworks/heartbeat_format.h"
#include "io/redis.h"

/* Where heartbeats are read. redis and format must outlive the beats. */
struct beats_source {
        struct redis *redis;
        const struct beats_format *format;
        const char *namespace;
};

/* source: its texts are copied. ops must stay. Returns 0 with *ret to be freed by beats_free(), or -ENOMEM.
 */
int redis_beats_new(const struct beats_source *source, const struct beats_ops *ops, void *userdata,
                    struct beats **ret);
