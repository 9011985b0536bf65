/* SPDX-License-Identifier: MIT */
/* Puts a socket for clients in its place: its lock, its directory, its mode and group. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

struct listener {
        int fd;
        int lock_fd;
        char *path; /* owned */
};

#define LISTENER_NONE                                                                                        \
        (struct listener)                                                                                    \
        {                                                                                                    \
                .fd = -1, .lock_fd = -1                                                                      \
        }

/* Takes the lock PATH.lock, which *ret_fd then holds; waits a while where a child of an earlier image of this
 * process has it. Returns 0; or -errno with a sentence in error: -EBUSY
 * where another sqmgr holds it, with its pid. */
int listener_lock(const char *path, int *ret_fd, char *error, size_t error_size);

/* Could a listener be opened there, another sqmgr's aside? Returns 0, or -errno with a sentence in error. */
int listener_check(const char *path, char *error, size_t error_size);

/* Where to listen, and who may connect. */
struct listener_place {
        const char *path;
        mode_t mode;
        gid_t group;   /* CONTROL_NO_GROUP: as it comes */
        int inherited; /* a socket that may listen there already; 0: none */
};

/* Takes PATH.lock, makes the directory where it alone is missing (0755), and listens. A socket that nobody
 * answers on is replaced; the inherited one is taken over in any case. Returns 0 with *listener filled, to be
 * closed by listener_close(); or -errno with a sentence in error: -EBUSY where another holds it. */
int listener_open(struct listener *listener, const struct listener_place *place, char *error,
                  size_t error_size);

/* Closes and removes a socket that was inherited and is no longer wanted; 0: there is none. */
void listener_drop(int inherited);

/* Removes the socket, closes it and lets go of the lock; does nothing to LISTENER_NONE. */
void listener_close(struct listener *listener);
