/* SPDX-License-Identifier: MIT */
/* Where files of ours stand: may others put something else in their place? */
#pragma once

#include <sys/types.h>

enum place_outcome {
        PLACE_SAFE = 0,
        PLACE_OWNER,    /* a directory on the way belongs to somebody else than root and ourselves */
        PLACE_LINK,     /* so does a link on the way */
        PLACE_WRITABLE, /* others may write to a directory on the way (above the last one, one with the sticky
                         * bit may be: what is ours there is nobody else's to move) */
};

/* Looks at the directory that holds path, at each link on the way to it, and at all above them. Returns enum
 * place_outcome, with the directory or link in where unless it is safe, cut to size; or -errno, -ENOENT where
 * there is no such directory, -ELOOP where there are too many links. */
int place_check(const char *path, char *where, size_t size);

/* The same of a file that is there and belongs to root or ourselves, for each link by which it is reached as
 * well: safe where nobody else has a say in which file is read. where may be a link then. -ELOOP: there are
 * too many. */
int place_check_file(const char *path, char *where, size_t size);

/* place_check() as a sentence in why: 0 where it is safe; else -EPERM, or -errno. */
int place_explain(const char *path, char *why, size_t size);
int place_explain_file(const char *path, char *why, size_t size);
