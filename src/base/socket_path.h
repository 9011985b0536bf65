/* SPDX-License-Identifier: MIT */
/* The default path of the control socket, shared by sqmgr and sqmgrctl, and the paths derived from a socket's
 * path. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The longest path of the socket, in bytes without the NUL. sqmgr binds the socket under its path plus
 * SOCKET_PATH_BESIDE first and then renames it. */
#define SOCKET_PATH_BESIDE ".new"
#define SOCKET_PATH_MAX    103

/* The parent of the runtime directories of sqmgr@NAME.service. */
#define SOCKET_PATH_SYSTEM "/run/sqmgr"

/* Returns the default socket in service_dir, which systemd made for the unit, so each unit has its own
 * socket; otherwise below runtime_dir; otherwise for root that of the instance `root`. service_dir is a list
 * separated by colons: the first entry counts. Either directory may be NULL; a relative one is ignored.
 *
 * Returns 0 with *ret owned by the caller, NULL if there is no such directory; or -ENOMEM. */
int socket_path_default(const char *service_dir, const char *runtime_dir, bool root, char **ret);

/* Returns true if that many letters of name can be the name of an instance of a unit. */
bool socket_path_is_instance(const char *name, size_t length);

/* Returns the control socket of sqmgr@NAME.service for NAME or sqmgr@NAME. Returns 0 with *ret owned by the
 * caller; -EINVAL if it is no such name; or -ENOMEM. */
int socket_path_instance(const char *name, char **ret);

/* Returns the parent of the workers' status directories, beside this socket: `status` for control.sock,
 * `NAME.status` for NAME.sock. The caller owns the result; NULL if memory is short. */
char *socket_path_status(const char *socket);
