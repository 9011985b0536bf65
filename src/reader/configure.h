/* SPDX-License-Identifier: MIT */
/* Makes the connection that a configuration describes. */
#pragma once

#include "queries/answer.h"
#include "queries/configuration.h"
#include "redis/redis.h"

/* Returns 0 with *ret, which connects once the loop runs, to be freed by redis_free(). With
 * configuration->check, only loads the files for TLS, and leaves *ret unchanged. Returns -EINVAL with the TLS
 * file at fault in *refusal, or another -errno. refusal->file is _SETTINGS_TLS_MAX if no file is at fault. */
int configure_redis(sd_event *event, const struct reader_configuration *configuration,
                    redis_state_fn on_state, void *userdata, struct redis **ret,
                    struct settings_tls_refusal *refusal);
