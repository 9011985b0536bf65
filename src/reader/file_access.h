/* SPDX-License-Identifier: MIT */
/* Restricts by Landlock which files the reader can open. */
#pragma once

/* From now on the process and its threads can open files below /etc, /usr and a few more folders for reading,
 * and nothing else by name; signals and abstract sockets of other processes are out of reach where the kernel
 * knows how. Needs PR_SET_NO_NEW_PRIVS. Does nothing where the kernel has no Landlock. Returns 0 or -errno.
 */
int file_access_restrict(void);
