/* SPDX-License-Identifier: MIT */
/* The kernel's text files in which each line is a key and a value. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* What stands behind the key at the start of a line, blanks skipped, or NULL. */
const char *procfile_value(const char *text, const char *key);

/* The same as a number of that base. Returns 0, or -ENODATA where the key or its number is missing. */
int procfile_number(const char *text, const char *key, int base, uint64_t *ret);

/* The same, decimal, of the open file. Returns also -errno. */
int procfile_read_number(int fd, const char *key, uint64_t *ret);

/* Our control group, from PROC-ROOT/self/cgroup: that of this controller of version 1; NULL: of version 2.
 * Leaves "" in path where it is outside of our cgroup namespace, and so out of reach. Returns 0; -ENOENT
 * where there is none; -ENAMETOOLONG; or -errno. */
int procfile_cgroup(const char *proc_root, const char *controller, char *path, size_t size);
