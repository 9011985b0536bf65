/* SPDX-License-Identifier: MIT */
/* The table of frameworks that keep data in Redis; each entry is defined in the framework's own folder. */
#include "frameworks/redis_format.h"

static const struct redis_format *const formats[] = {
        &sidekiq_redis_format, &native_redis_format, &rq_redis_format,
        &resque_redis_format,  &celery_redis_format, &bullmq_redis_format,
};

const struct redis_format *redis_format_of(unsigned id)
{
        for (size_t i = 0; i < ELEMENTSOF(formats); i++)
                if (formats[i]->traits->id == id)
                        return formats[i];
        return NULL;
}
