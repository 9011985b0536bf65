/* SPDX-License-Identifier: MIT */
/* Parses the kernel's text files of keys and values. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns the text after the key at the start of a line, with blanks skipped; or NULL. */
const char *procfile_value(const char *text, const char *key);

/* Reads the value of key as a number of that base. Returns 0, or -ENODATA if the key or its number is
 * missing. */
int procfile_number(const char *text, const char *key, int base, uint64_t *ret);

/* Reads the last pid of a list of them: a status file lists the pids of a process from our PID namespace to
 * its own. Returns 0, or -ENODATA if the key or its list is missing or invalid. */
int procfile_last_pid(const char *text, const char *key, pid_t *ret);

/* Reads the value of key in the open file as a decimal number. Considers the first 16 KiB only. Returns 0,
 * -ENODATA as procfile_number(), or -errno. */
int procfile_read_number(int fd, const char *key, uint64_t *ret);

/* Reads the path of our control group from PROC-ROOT/self/cgroup. controller: a controller of version 1; NULL
 * for the group of version 2. path is "" if the group is outside of our cgroup namespace and cannot be
 * reached. Returns 0, -ENOENT if there is no such group, -ENAMETOOLONG, or another -errno. */
int procfile_cgroup(const char *proc_root, const char *controller, char *path, size_t size);
