/* SPDX-License-Identifier: MIT */
/* Opens a listening socket to which all may connect: lock, directory and mode. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

struct listener {
        int fd;
        int lock_fd;
        char *path;   /* owned */
        dev_t device; /* with inode: of the socket's file, to detect that the path leads to another one */
        ino_t inode;
};

#define LISTENER_NONE                                                                                        \
        (struct listener)                                                                                    \
        {                                                                                                    \
                .fd = -1, .lock_fd = -1                                                                      \
        }

/* Takes the lock PATH.lock, held through *ret_fd. Waits up to 5 s while only a child of an ended sqmgr, or
 * of the previous image of this one, extends the lock, or if its holder is in another pid namespace. Returns
 * 0, or -errno with a sentence in error. -EBUSY: another sqmgr holds the lock; the sentence names its pid if
 * known. */
int listener_lock(const char *path, int *ret_fd, char *error, size_t error_size);

/* Claims the path for this process, held through *ret_fd, so another sqmgr of our user, in our pid and
 * network namespaces, is found even if somebody has deleted the file of its lock. Returns 0; or -errno with a
 * sentence in error. -EBUSY: another sqmgr claims it. *ret_fd is unchanged if a child of an ended sqmgr, or
 * another user, has the claim: the next call tries again. Never waits. */
int listener_claim(const char *path, int *ret_fd, char *error, size_t error_size);

/* Checks whether a listener could be opened at path, apart from a running sqmgr there. Returns 0, or -errno
 * with a sentence in error. */
int listener_check(const char *path, char *error, size_t error_size);

/* Takes PATH.lock, makes the directory if only the last component is missing (mode 0755), and listens (mode
 * 0666). Replaces a socket on which nothing answers. inherited may listen at path already (0: none), and is
 * taken ownership of in all cases. Returns 0 with *listener, to be closed with listener_close(), or -errno
 * with a sentence in error. -EBUSY: another sqmgr holds the lock. */
int listener_open(struct listener *listener, const char *path, int inherited, char *error, size_t error_size);

/* Listens at the path again if somebody has deleted or replaced the socket's file. Returns 0 if the file is
 * in place; 1 with a socket in *ret_fd, with which the caller replaces listener->fd; or -errno with a
 * sentence in error. A socket on which another program answers is not replaced. Never waits. */
int listener_open_again(struct listener *listener, int *ret_fd, char *error, size_t error_size);

/* Removes the socket if it is still in place, closes it and releases the lock. Does nothing for
 * LISTENER_NONE. */
void listener_close(struct listener *listener);
