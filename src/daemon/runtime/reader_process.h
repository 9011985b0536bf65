/* SPDX-License-Identifier: MIT */
/* Starts reader processes: the program sqmgr-reader, as a user without rights. */
#pragma once

#include "daemon/runtime/children.h"
#include "io/reader.h"
#include "settings/value.h"
#include <sys/types.h>

struct reader_starter_daemon {
        struct reader_starter starter;
        struct children *children; /* not owned */
        const char *path;          /* see reader_starter_init() */
        /* The program, opened once: a running sqmgr keeps its version of the reader after an upgrade. -errno:
         * not found yet. */
        int program_fd;
        uid_t uid;
        gid_t gid;
};

/* Opens the program at path; NULL: sqmgr-reader as own_program_open() finds it. A missing program is
 * logged, and each start of a reader tries again. path and children must outlive the starter. Looks up the
 * user, which may block. Returns 0 with *ret, to be cleared by reader_starter_clear(); or -errno. */
int reader_starter_init(struct reader_starter_daemon *ret, struct children *children, const char *path);
/* Kills the processes that are left, and waits for their ends. Call when no struct reader uses the starter
 * any more. */
void reader_starter_clear(struct reader_starter_daemon *starter);

/* Starts a reader that loads the TLS files of the settings, and blocks for its answer, about 5 s at most:
 * call only while settings are loaded. Returns 0, -EINVAL with the refused file and the reason in *ret,
 * -ETIMEDOUT, or another -errno. */
int reader_judge_tls(const struct redis_settings *settings, struct settings_tls_refusal *ret);
