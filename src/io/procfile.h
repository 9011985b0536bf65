/* SPDX-License-Identifier: MIT */
/* Parses the kernel's text files of keys and values. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns the text after the key at the start of a line, with blanks skipped; or NULL. */
const char *procfile_value(const char *text, const char *key);

/* Returns the value of key as a number of that base. Returns 0, or -ENODATA if the key or its number is
 * missing. */
int procfile_number(const char *text, const char *key, int base, uint64_t *ret);

/* Reads the open file and returns the value of key as a decimal number. Returns 0, -ENODATA as
 * procfile_number(), or -errno. */
int procfile_read_number(int fd, const char *key, uint64_t *ret);

/* Returns the path of our control group from PROC-ROOT/self/cgroup, for this controller of version 1; NULL:
 * of version 2. path is "" if the group is outside of our cgroup namespace and cannot be reached. Returns 0;
 * -ENOENT if there is none; -ENAMETOOLONG; or -errno. */
int procfile_cgroup(const char *proc_root, const char *controller, char *path, size_t size);
