/* SPDX-License-Identifier: MIT */
/* Makes the connection that a configuration describes. */
#pragma once

#include "queries/answer.h"
#include "queries/configuration.h"
#include "redis/redis.h"

/* Returns 0 with *ret, to be freed by redis_free(), which connects once the loop runs unless the
 * configuration is only to be judged; or -errno, with a sentence in why or "". */
int configure_redis(sd_event *event, const struct reader_configuration *configuration,
                    redis_state_fn on_state, void *userdata, struct redis **ret,
                    char why[static ANSWER_ERROR_MAX]);
