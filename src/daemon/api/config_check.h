/* SPDX-License-Identifier: MIT */
/* Whether the next start would refuse the config file as it now is on disk. The installed sqmgr judges that
 * in a child process, and only when somebody asks for problems. */
#pragma once

#include "daemon/runtime/runtime.h"
#include <sys/stat.h>

struct config_check {
        struct runtime *runtime; /* not owned, like the paths */
        const char *program, *config_path;
        struct timespec mtime; /* of the file when it was accepted or judged last, as inode and size */
        ino_t inode;
        off_t size;
        usec_t judged_at; /* 0: not yet */
        bool refused;
        usec_t refused_at;
        struct child child;
        usec_t child_at; /* when the child was started */
};

/* Call after a start or a reload has accepted the file: it needs no judgment until it changes. */
void config_check_accept(struct config_check *check, usec_t now);
/* Call after a reload has refused the file. */
void config_check_doubt(struct config_check *check);
/* Starts a child if the file has changed, or was not judged for ten minutes. Returns the path of the file if
 * it was refused when last judged, else NULL. */
const char *config_check_refused(struct config_check *check, usec_t now);
void config_check_end(struct config_check *check);
