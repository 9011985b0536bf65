/* SPDX-License-Identifier: MIT */
/* The user that sqmgr-reader runs as. */
#pragma once

#include <sys/types.h>

/* As root: the user sqmgr-reader of /etc/passwd, or nobody (65534) if there is none. Otherwise our own user.
 * Returns 0 or -errno. */
int reader_user(uid_t *ret_uid, gid_t *ret_gid);
