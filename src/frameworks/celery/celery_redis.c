/* SPDX-License-Identifier: MIT */
/* Celery's data in Redis. */
#include "frameworks/celery/celery_redis.h"
#include "frameworks/celery/celery.h"
#include "frameworks/redis_format.h"

const struct redis_format celery_redis_format = {
        .traits = &celery_traits,
        .live = &celery_live_format,
};
