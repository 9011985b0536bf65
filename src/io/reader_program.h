/* SPDX-License-Identifier: MIT */
/* Finds the programs that sqmgr starts for itself. */
#pragma once

/* Opens a program, as O_PATH: the one beside that of this process, as in a build root, or two folders above,
 * as for the sqmgr that tests build; otherwise the installed one. Returns a descriptor that the caller owns,
 * or -errno. */
int reader_program_open(const char *name, const char *installed);
