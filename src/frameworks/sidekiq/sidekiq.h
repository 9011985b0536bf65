/* SPDX-License-Identifier: MIT */
/* Sidekiq 5 to 8 as its machine shows it: its identity, its process title, its thread names. */
#pragma once

#include "frameworks/framework.h"
#include "model/heartbeat_info.h"

extern const struct traits sidekiq_traits;
extern const struct framework sidekiq_framework;
/* In sidekiq_redis.c. */

/* Splits `HOST:PID:NONCE`; the host may contain colons. Returns true with the length of the host at the
 * start of text, and the pid. */
bool sidekiq_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);

/* True if a thread of this name runs jobs. info may be NULL: the only capsule is then `default`. */
bool sidekiq_thread_is_processor(const char *comm, const struct heartbeat_info *info);

/* Parses `sidekiq VERSION TAG [N of M busy]`. Sidekiq sets this title at each heartbeat, so it proves that
 * the process has booted. The title of a booting process is its command line. Returns false if the title
 * is not that of a booted Sidekiq. */
bool sidekiq_title_parse(const char *title, struct title *ret);
