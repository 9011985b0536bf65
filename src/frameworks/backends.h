/* SPDX-License-Identifier: MIT */
/* Backends of servers, as frameworks use them. */
#pragma once

#include "servers/server.h"

struct redis_settings;
struct settings_tls_refusal;

extern const struct reader_backend redis_backend, database_backend;

/* Loads the TLS files of the settings. Returns 0, -EINVAL with the refused file and the reason in *ret, or
 * another -errno. */
int redis_judge_tls(const struct redis_settings *settings, struct settings_tls_refusal *ret);
