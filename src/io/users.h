/* SPDX-License-Identifier: MIT */
/* The names of users. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

/* The name of a user, as /etc/passwd has it: a directory elsewhere would have to be waited for. "" where
 * there is none, or no room for it. */
void users_name(uid_t uid, char *name, size_t size);
