/* SPDX-License-Identifier: MIT */
/* Starts reader processes: a program for each kind of server. */
#pragma once

#include "daemon/runtime/children.h"
#include "io/reader.h"
#include "settings/database_url.h"
#include "settings/value.h"
#include <sys/types.h>

struct reader_starter_daemon {
        struct reader_starter starter;
        struct children *children; /* not owned */
        const char *path;          /* see reader_starter_init() */
        /* The programs, each opened once: a running sqmgr keeps its version of the reader after an upgrade.
         * By enum database_engine, and for Redis the last. -errno: not found yet. */
        int program_fds[_DATABASE_ENGINE_MAX + 1];
};

/* Opens the programs: that for Redis is at path, and the others have a suffix to it; NULL: as
 * own_program_open() finds them. Each start of a reader whose program is missing tries again; that for Redis
 * is logged if it is missing. path and children must outlive the starter. The
 * caller clears *ret by reader_starter_clear(). */
void reader_starter_init(struct reader_starter_daemon *ret, struct children *children, const char *path);
/* Kills the processes that are left, and waits for their ends. Call when no struct reader uses the starter
 * any more. */
void reader_starter_clear(struct reader_starter_daemon *starter);

/* Starts a reader that loads the TLS files of the settings, and blocks for its answer, about 5 s at most:
 * call only while settings are loaded. Returns 0, -EINVAL with the refused file and the reason in *ret,
 * -ETIMEDOUT, or another -errno. */
int reader_judge_tls(const struct redis_settings *settings, struct settings_tls_refusal *ret);
