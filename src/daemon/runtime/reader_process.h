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
        /* The program is opened once: an upgrade replaces sqmgr and it together. -errno: not found yet. */
        int program_fd;
        uid_t uid;
        gid_t gid;
};

/* Opens the program at path; NULL: the one beside that of this process, as in a build root, or else the one
 * that is installed. If there is none, that is logged, and each start of a reader tries again. path and
 * children must outlive the starter. Looks up the user, which may block. Returns 0 with *ret, to be cleared
 * by reader_starter_clear(); or -errno. */
int reader_starter_init(struct reader_starter_daemon *ret, struct children *children, const char *path);
/* Call when no reader is left. */
void reader_starter_clear(struct reader_starter_daemon *starter);

/* Has a reader load the files for TLS, and waits for its answer: call it only when settings are read. */
int reader_judge_tls(const struct redis_settings *settings, struct settings_tls_refusal *ret);
