/* SPDX-License-Identifier: MIT */
/* The user that sqmgr-reader runs as. */
#pragma once

#include <sys/types.h>

/* As root: the user sqmgr-reader of /etc/passwd; or nobody (65534) if that user is missing, or has the uid or
 * gid of root. Otherwise our own effective user. Returns 0. */
int reader_user(uid_t *ret_uid, gid_t *ret_gid);
