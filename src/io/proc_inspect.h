/* SPDX-License-Identifier: MIT */
/* Reads of a process what the kernel shows to root and to its user alone. io/proc.h reads the rest.
 *
 * All return 0 or -errno unless stated otherwise. -ESRCH means that the process is gone. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

struct proc; /* io/proc.h */

/* Reads the initial environment: NAME=VALUE entries, each followed by a NUL. A process that sets its title
 * may have overwritten any entry. Entries beyond size - 1 bytes are omitted. Returns the length, also 0
 * during execve(); or -errno, including -EACCES. */
ssize_t proc_environment(const struct proc *proc, char *text, size_t size);

/* Opens the standard output of the process as O_PATH, for log_tail_read(). Returns a descriptor that the
 * caller owns, or -errno:
 *
 * - -ENODEV: not a regular file
 * - -EACCES: the process itself cannot read from the descriptor */
int proc_open_output(const struct proc *proc);

/* Reads the log tail of the output written since the log was start_bytes long. lines is "" if there is no
 * output, or the log is not a regular file. log_fd may be O_PATH: the log is opened anew, with the rights of
 * the caller, and a file server may delay that without limit. pids: see log_tail_cut(). Returns 0 or -errno.
 */
int log_tail_read(int log_fd, uint64_t start_bytes, const pid_t pids[static 2], char *lines, size_t size);

/* Reads the proportional share of memory (PSS), and the memory shared with no other process. Scans the page
 * tables, which takes milliseconds. */
int proc_mapped_bytes(const struct proc *proc, uint64_t *ret_pss, uint64_t *ret_private);

/* Lists the servers that the process has TCP connections to: ADDRESS:PORT, IPv6 in [], separated by ", ". As
 * many as fit. Bounded, but slow where many sockets exist. */
#define PROC_PEERS_MAX 128
int proc_peers(const struct proc *proc, char text[static PROC_PEERS_MAX]);

/* Reads the path of the program that the process runs. " (deleted)" follows the path of a removed one. A
 * longer path is truncated. */
int proc_program(const struct proc *proc, char *path, size_t size);

/* Reads the host name in the UTS namespace of the process. -EPERM: the process has one of its own. */
#define PROC_HOST_NAME_MAX 65
int proc_host_name(const struct proc *proc, char name[static PROC_HOST_NAME_MAX]);

/* Returns 1 if the process is in another pid namespace than we are, 0 if not, or -errno. */
int proc_is_elsewhere(const struct proc *proc);
