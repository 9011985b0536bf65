/* SPDX-License-Identifier: MIT */
/* Processes as /proc shows them. A process is named for good by a pidfd and its start time, so that none of
 * these functions ever reads or signals another one that was given the same pid.
 *
 * All return 0 or -errno unless they say otherwise; -ESRCH means that the process is gone. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

struct proc;

/* Takes hold of process pid, which need not be a child; one that has exited but was not waited for counts
 * too. Free *ret with proc_close(). */
int proc_open(pid_t pid, struct proc **ret);
struct proc *proc_close(struct proc *proc);
DEFINE_CLEANUP(struct proc *, proc_close)
#define _cleanup_proc_ _cleanup_(proc_close_pointer)

/* Opens the process that has this pid and start time. Returns 0 with *ret, NULL where it has exited; or
 * -errno.
 */
int proc_find(pid_t pid, uint64_t start, struct proc **ret);
/* The same question without a handle; false also where it cannot be answered. */
bool proc_lives(pid_t pid, uint64_t start);

pid_t proc_pid(const struct proc *proc);
/* Owned by proc; polls EPOLLIN when the process has exited. */
int proc_pidfd(const struct proc *proc);
/* Field 22 of /proc/PID/stat, in clock ticks since boot. */
uint64_t proc_start_time(const struct proc *proc);

/* Nobody need have waited for it. */
bool proc_has_exited(const struct proc *proc);

/* The user whose rights the process has, from one look at a directory: the first to be asked of many. */
int proc_uid(const struct proc *proc, uid_t *ret);

/* Do both run the program of one place, whatever has been installed there since? Returns 1, 0 or -errno. */
int proc_runs_same(const struct proc *proc, const struct proc *other);

/* Where it stands among the others, from one reading. */
struct proc_place {
        char state; /* as ps shows it: 'R', 'S', 'D', 'T', ... */
        pid_t parent;
        pid_t group;
        pid_t session;
        uint64_t start_time; /* as proc_start_time() */
        char comm[16];
};
int proc_place(const struct proc *proc, struct proc_place *ret);

/* The environment that it was started with: NAME=VALUE entries, a NUL behind each; a process that sets its
 * title may have overwritten any of them. Entries beyond size - 1 bytes are left out. Returns the length, 0
 * for one in the middle of execve(), too; or -errno, also -EACCES. */
ssize_t proc_environment(const struct proc *proc, char *text, size_t size);

/* A duplicate of its standard output, to be read by pread() alone: the offset is the process's own. -ENODEV
 * where that is no regular file, or one of a server that may hang; -EACCES where the process itself could not
 * read from it; -EPERM where we may not have it, and -ENOSYS before Linux 5.6. Returns the descriptor, the
 * caller's, or -errno. */
int proc_open_output(const struct proc *proc);

/* Its control groups, as /proc/PID/cgroup has them; -ENOBUFS where size is too small. */
int proc_cgroup(const struct proc *proc, char *text, size_t size);

/* Resident memory of the process alone. -ESRCH where it has exited too, though nobody has waited for it.
 * Keeps a descriptor of statm from the first call on. */
int proc_rss_bytes(struct proc *proc, uint64_t *ret_bytes);

/* The process's proportional share of memory: walks its page tables, which takes milliseconds. */
int proc_pss_bytes(const struct proc *proc, uint64_t *ret_bytes);

/* What of its memory it shares with no other process: costs as much. */
int proc_private_bytes(const struct proc *proc, uint64_t *ret_bytes);

/* The title, as `ps` shows it: the command line with blanks between the words, its padding trimmed; "" for
 * one that has exited. Cut at size - 1 bytes; the bytes are the process's own (see base/printable.h). */
int proc_title(const struct proc *proc, char *title, size_t size);

/* How many of its threads have a name that match accepts. */
int proc_count_threads(const struct proc *proc, bool (*match)(const char *comm, void *userdata),
                       void *userdata, unsigned *ret);

/* Does it have a handler for the signal? Returns 1, 0 or -errno. */
int proc_catches_signal(const struct proc *proc, int signo);

/* Is its main thread asleep, and how often has it been? The same number again: it has slept on, or has done
 * nothing that takes waiting. */
int proc_sleeps(const struct proc *proc, bool *ret_asleep, uint64_t *ret_times);

int proc_signal(const struct proc *proc, int signo);

/* Is pid the process named by ancestor_pid and ancestor_start, or a descendant of it? Returns 1, 0 or -errno.
 */
int proc_has_ancestor(pid_t pid, pid_t ancestor_pid, uint64_t ancestor_start);

/* The children of pid at one moment: *ret_n pids in *ret, which is to be freed. */
int proc_children(pid_t pid, pid_t **ret, size_t *ret_n);

/* All processes at one moment, as proc_children() returns them. For the start, not for a tick. */
int proc_all(pid_t **ret, size_t *ret_n);

/* Calls each for every process of that group, until it returns other than 0; that is returned. Of the others
 * nothing but their group is asked: anybody can have thousands of them. */
int proc_group_each(pid_t group, int (*each)(pid_t pid, void *userdata), void *userdata);

/* Calls each for pid and then for its descendants, parents before their children, until it returns other than
 * 0; that is returned. Not for every tick: it costs a directory for each thread. The _at variant reads below
 * another root than /proc. Where the kernel lacks the `children` files, all processes are scanned. */
int proc_tree_each(pid_t pid, int (*each)(pid_t pid, void *userdata), void *userdata);
int proc_tree_each_at(const char *proc_root, pid_t pid, int (*each)(pid_t pid, void *userdata),
                      void *userdata);
