/* SPDX-License-Identifier: MIT */
/* Opens files that decide what sqmgr does or that hold its secrets; explains which permission is missing. */
#pragma once

#include "base/macro.h"
#include <limits.h>

#define FILE_WHY_MAX    1024
#define FILE_REMEDY_MAX (PATH_MAX + 64)

/* Opens a regular file for reading. The file and its directory must belong to root or to our user, and nobody
 * else may write to them. A sticky directory, or one mounted read-only, protects the file from others.
 *
 * Returns a descriptor, or -errno with a sentence in why. For -EPERM (not trusted) and -EACCES, the sentence
 * ends with the command that helps. */
int file_access_open(const char *path, char why[static FILE_WHY_MAX]);

/* Returns true if the sentence of file_access_open() for this -errno names what helps. */
static inline bool file_access_has_remedy(int r)
{
        return r == -EPERM || r == -EACCES;
}

/* Writes what helps if a log cannot be opened, to be appended to the message; empty if nothing is known for
 * this errno. Allocates nothing. */
void file_access_log_remedy(int error, char remedy[static FILE_REMEDY_MAX]);
