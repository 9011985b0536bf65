/* SPDX-License-Identifier: MIT */
/* Restricts by Landlock which files the reader can open. */
#pragma once

/* From now on, the calling thread can open files by name only for reading, and only below /etc, /usr and a
 * few more folders. Files below folder, if it is not NULL, can also be made, written and removed. Recent
 * kernels also deny signals to other processes and their abstract sockets. Threads started later inherit the
 * restriction. Needs PR_SET_NO_NEW_PRIVS. Does nothing if the kernel has no Landlock. Returns 0 or -errno. */
int file_access_restrict(const char *folder);
