/* SPDX-License-Identifier: MIT */
/* Where files of ours stand: may others put something else in their place? */
#pragma once

#include <sys/types.h>

/* Checks the directory that holds path, each link on the way to it, and all directories above them. All must
 * belong to root or ourselves. Nobody else may write to them; above the last one, a directory with the sticky
 * bit may be writable: what is ours there is nobody else's to move. Returns 0 where the place is safe; else
 * -EPERM, or -errno (-ENOENT: no such directory, -ELOOP: too many links), with a sentence in why. */
int path_trust_explain(const char *path, char *why, size_t size);

/* The same of a file that is there and belongs to root or ourselves, also for each link by which it is
 * reached: safe where nobody else has a say in which file is read. */
int path_trust_explain_file(const char *path, char *why, size_t size);
