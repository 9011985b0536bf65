/* SPDX-License-Identifier: MIT */
/* Processes in /proc. A process is identified by a pidfd and its start time, so these functions never read
 * another process that got the same pid. io/signal.h sends signals.
 *
 * All return 0 or -errno unless stated otherwise. -ESRCH means that the process is gone. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

#define PROC_PEERS_MAX     128
#define PROC_HOST_NAME_MAX 65

/* The probe functions check whether processes exist. They send nothing and need no rights, but use the system
 * calls that send signals: they are here so that no other file contains these calls. */

/* Returns 0 while the process is not reaped: until then its pid is not reused. -ESRCH afterwards; or -errno.
 */
int probe_pidfd(int pidfd);
/* Returns false if no process has the pid. Another process may have got it meanwhile. */
bool probe_pid(pid_t pid);
/* Returns true if the process group has a process that we may signal. */
bool probe_group(pid_t group);

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

struct proc;

/* Opens a process, which need not be our child. A zombie can be opened too. Free *ret with proc_close(). */
int proc_open(pid_t pid, struct proc **ret);
/* Accepts NULL; returns NULL. */
struct proc *proc_close(struct proc *proc);
DEFINE_CLEANUP(struct proc *, proc_close)
#define _cleanup_proc_ _cleanup_(proc_close_pointer)

/* Opens the process with this pid and start time. Returns 0 with *ret, NULL if that process has exited; or
 * -errno. */
int proc_find(pid_t pid, uint64_t start, struct proc **ret);
/* Returns true if the process with this pid and start time exists; false also after an error. */
bool proc_is_alive(pid_t pid, uint64_t start);

pid_t proc_pid(const struct proc *proc);
/* Returns a descriptor, owned by proc, that polls EPOLLIN once the process has exited. */
int proc_pidfd(const struct proc *proc);
/* Field 22 of /proc/PID/stat, in clock ticks since boot. */
uint64_t proc_start_time(const struct proc *proc);

/* Returns true if the process has exited, reaped or not. */
bool proc_has_exited(const struct proc *proc);

/* Reads the user whose rights the process has. Cheap, since only the owner of one directory is read: suited
 * as the first check of many processes. */
int proc_uid(const struct proc *proc, uid_t *ret);

/* The relations of a process, from one reading of its stat file. */
struct proc_place {
        char state; /* as in ps: 'R', 'S', 'D', 'T', ... */
        pid_t parent;
        pid_t group;
        pid_t session;
        uint64_t start_time; /* as returned by proc_start_time() */
        char comm[16];
};
int proc_place(const struct proc *proc, struct proc_place *ret);

/* Reads the pid of the process in its own PID namespace, as the process itself sees it. */
int proc_own_pid(const struct proc *proc, pid_t *ret);

/* Reads the control groups in the format of /proc/PID/cgroup. Returns -ENOBUFS if size is too small. */
int proc_cgroup(const struct proc *proc, char *text, size_t size);

/* Reads the resident memory of the process alone. Returns -ESRCH for a zombie too. Keeps a descriptor of
 * statm after the first call. */
int proc_rss_bytes(struct proc *proc, uint64_t *ret_bytes);

/* Reads the title, as shown by `ps`: the command line with blanks between the arguments, without trailing
 * padding; "" for a process that has exited. Truncated to size - 1 bytes. Untrusted text: see
 * base/printable.h. */
int proc_title(const struct proc *proc, char *title, size_t size);

/* Counts the threads whose name match() accepts. */
int proc_count_threads(const struct proc *proc, bool (*match)(const char *comm, void *userdata),
                       void *userdata, unsigned *ret);

/* Returns 1 if the process has a handler for the signal, 0 if not, or -errno. */
int proc_catches_signal(const struct proc *proc, int signo);

/* Returns 1 if the signal was sent to the process and is not handled yet, 0 if not, or -errno. */
int proc_signal_is_pending(const struct proc *proc, int signo);

/* Reads whether the main thread sleeps, and its number of voluntary context switches. An unchanged number
 * means that the thread kept sleeping, or ran without waiting for anything. */
int proc_sleeps(const struct proc *proc, bool *ret_asleep, uint64_t *ret_times);

/* Returns 1 if pid is the process identified by ancestor_pid and ancestor_start, or a descendant; 0 if not;
 * or -errno. */
int proc_has_ancestor(pid_t pid, pid_t ancestor_pid, uint64_t ancestor_start);

/* Lists the children of pid: *ret_n pids in *ret, which the caller frees; NULL: none. */
int proc_children(pid_t pid, pid_t **ret, size_t *ret_n);

/* Lists all processes; returns as proc_children() does. Expensive: for the startup, not for each tick. */
int proc_all(pid_t **ret, size_t *ret_n);

/* Calls each() for every process of the process group until a call returns nonzero, and returns that value.
 * Other processes cost one getpgid() each: any user can have thousands of them. */
int proc_group_each(pid_t group, int (*each)(pid_t pid, void *userdata), void *userdata);

/* Calls each() for pid and its descendants, parents before children, until a call returns nonzero, and
 * returns that value. Expensive: reads a directory for each thread, so not for every tick. */
int proc_tree_each(pid_t pid, int (*each)(pid_t pid, void *userdata), void *userdata);

/* Facts that the kernel shows to root and to the user of the process alone. */

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
int proc_peers(const struct proc *proc, char text[static PROC_PEERS_MAX]);
/* Reads the path of the program that the process runs. " (deleted)" follows the path of a removed one. A
 * longer path is truncated. */
int proc_program(const struct proc *proc, char *path, size_t size);
/* Reads the host name in the UTS namespace of the process. -EPERM: the process has one of its own. */
int proc_host_name(const struct proc *proc, char name[static PROC_HOST_NAME_MAX]);
/* Returns 1 if the process is in another pid namespace than we are, 0 if not, or -errno. */
int proc_is_elsewhere(const struct proc *proc);
