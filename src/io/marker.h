/* SPDX-License-Identifier: MIT */
/* Repeats the environment markers of a worker in the name of a descriptor that the worker inherits. A library
 * that sets the title of a process may overwrite its environment; nothing overwrites this name. */
#pragma once

#include <sys/types.h>

struct environment; /* base/environment.h */
struct proc;        /* io/proc.h */

/* Below the number at which the kernel enlarges the table of descriptors, above those that scripts use. */
#define MARKER_FD  60
#define MARKER_MAX 250 /* the longest name that the kernel accepts, with its NUL */

/* Makes the name from the environment of a worker. Returns text. */
char *marker_name(const struct environment *environment, char text[static MARKER_MAX]);
/* Call last before execve(), with descriptor MARKER_FD unused. Makes system calls alone. Nothing happens if
 * memory or descriptors are short: the worker is then found by its environment alone. */
void marker_put(const char *name);

/* Reads the markers: NAME=VALUE entries, each followed by a NUL. Untrusted, as an environment is. Never waits
 * for the process. Returns the length, 0 if the process has no such descriptor; or -errno. */
ssize_t marker_read(const struct proc *proc, char text[static MARKER_MAX]);
