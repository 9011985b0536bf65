/* SPDX-License-Identifier: MIT */
/* Looks up names of users and groups. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

/* Looks up the name of a user in /etc/passwd only: a remote directory could block. name is "" if there is no
 * such user, the file cannot be read, or size is too small. */
void users_name(uid_t uid, char *name, size_t size);

/* As users_name(), but name is the number if there is no name. */
void users_name_or_number(uid_t uid, char *name, size_t size);

/* Looks up a group by name in /etc/group only. Returns false if there is no such group or the file cannot be
 * read. */
bool users_group(const char *name, gid_t *ret);

/* Returns true if the kernel reports users or groups that have no number here by this number: the overflow
 * id, in a user namespace. Who has it is not known. */
bool users_is_of_unmapped(unsigned id);
