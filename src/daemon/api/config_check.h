/* SPDX-License-Identifier: MIT */
/* Checks whether the next start would refuse the config file as it is on disk now. The installed sqmgr judges
 * the file in a child process, and only when a client asks for problems. */
#pragma once

#include "daemon/runtime/runtime.h"
#include <sys/stat.h>

struct config_check {
        struct runtime *runtime; /* not owned, like the paths */
        const char *program, *config_path;
        struct timespec mtime; /* with inode and size: of the file when it was last accepted or judged */
        ino_t inode;
        off_t size;
        usec_t judged_at; /* when the child was started, or the file accepted */
        bool refused;
        usec_t refused_at;
        struct child child;
};

/* Call after a start or a reload has accepted the file: no child is started until the file changes or ten
 * minutes have passed. */
void config_check_accept(struct config_check *check, usec_t now);
/* Call after a reload has refused the file: the next config_check_refused() starts a child. */
void config_check_doubt(struct config_check *check);
/* Starts a child if the file has changed, or was not judged for ten minutes. Never waits: the result counts
 * at a later call. Returns the path of the file if it was refused when last judged, else NULL. */
const char *config_check_refused(struct config_check *check, usec_t now);
/* Kills a running child and waits for its end. */
void config_check_end(struct config_check *check);
