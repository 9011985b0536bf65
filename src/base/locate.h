/* SPDX-License-Identifier: MIT */
/* Finds the instances of sqmgr on this machine for their clients, and connects to them. An instance may
 * belong to another user: a client connects only to a server of the user who owns the socket's directory. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

struct located {
        const char *name;   /* of the instance */
        const char *socket; /* the control socket */
        uid_t owner;        /* of the socket's directory */
};

/* Calls found() for each instance that has a control socket, in order of names: below system_dir, then the
 * one of the user manager in user_dir (NULL: none), which has the name of its user. The directories must
 * belong to root or to the caller; others are skipped. The strings are valid during the call. */
void locate_instances(const char *system_dir, const char *user_dir,
                      void (*found)(void *userdata, const struct located *instance), void *userdata);

/* Connects to a control socket as fd_connect() does. named: the instance was found, or was given by its name:
 * socket and directory must not be links, the directory's parent belongs to root or the caller, and the
 * server runs as the directory's owner. Otherwise the caller gave the path: the server runs as the
 * directory's owner, or as root or the caller in a directory of root or the caller. Returns a descriptor,
 * -errno, or -EKEYREJECTED with the reason in *ret_reason, a constant. */
int locate_connect(const char *socket, bool named, int flags, usec_t send_timeout, const char **ret_reason);

/* Returns the name of the instance with this socket: the last component of the socket's directory, or the
 * name of the user, who runs it, for the directory `sqmgr` of the user manager. The caller owns the result;
 * NULL if memory is short. */
char *locate_name(const char *socket, uid_t user);
/* Returns true if sqmgrctl finds the instance with this socket by its name. runtime_dir: XDG_RUNTIME_DIR of
 * the caller; may be NULL. */
bool locate_finds(const char *socket, const char *runtime_dir);
