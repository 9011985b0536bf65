/* SPDX-License-Identifier: MIT */
/* Finds the programs that sqmgr starts for itself. */
#pragma once

/* Opens a program as O_PATH, the first one found of:
 *
 * - name in the folder of our own program, as in a build root
 * - name two folders above, as for the sqmgr that tests build
 * - installed, an absolute path
 *
 * Returns a descriptor that the caller owns, or -errno. */
int own_program_open(const char *name, const char *installed);

/* Returns the path of a file or folder: installed, if that exists; else name beside our own program, found as
 * above; else installed. The caller frees it. NULL: memory is short. */
char *own_program_path(const char *installed, const char *name);
