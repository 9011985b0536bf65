/* SPDX-License-Identifier: MIT */
/* The user that reader processes run as. */
#pragma once

#include <sys/types.h>

/* As root: the user sqmgr-reader, or nobody if there is no such user. Otherwise our own. May block: call it
 * at startup only. Returns 0 or -errno. */
int reader_user(uid_t *ret_uid, gid_t *ret_gid);
