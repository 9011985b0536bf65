/* SPDX-License-Identifier: MIT */
/* Checks that nobody but root and ourselves can replace a file of ours. */
#pragma once

#include <sys/types.h>

/* Checks the directory of path, each link on the way, and all parent directories. All must belong to root or
 * ourselves, and nobody else may write to them. A parent of the last directory may be writable if it has the
 * sticky bit, which protects our entries from being moved.
 *
 * Returns 0 if the place is safe; otherwise -EPERM, or -errno (-ENOENT: no such directory, -ELOOP: too many
 * links), with a sentence in why. */
int path_trust_explain(const char *path, char *why, size_t size);

/* Checks an existing file that belongs to root or ourselves, and each link that leads to it, in the same way.
 * Safe means that nobody else can choose which file is read. Returns as path_trust_explain(). */
int path_trust_explain_file(const char *path, char *why, size_t size);
