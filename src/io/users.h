/* SPDX-License-Identifier: MIT */
/* The names of users and groups. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

/* The name of a user, as /etc/passwd has it: a directory elsewhere would have to be waited for. "" where
 * there is none, or no room for it. */
void users_name(uid_t uid, char *name, size_t size);

/* The group of that name in /etc/group. Returns false where there is none. */
bool users_group(const char *name, gid_t *ret);
