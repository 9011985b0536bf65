/* SPDX-License-Identifier: MIT */
/* Reads facts of processes from files that can make their reader wait: titles, environments, mapped memory,
 * peers, and log tails.
 *
 * The loop asks, and never waits: a process of its own, sqmgr-proc-reader, reads. One that is late is killed,
 * and started again after a growing pause.
 *
 * Each function returns 0, or -errno:
 *
 * - -EINPROGRESS: the question was sent or waits; call again once `arrived` was called
 * - -ETIMEDOUT: no answer in time; later calls ask again after a pause
 *
 * An answer is returned for half a second; after that, the next call asks again. With facts NULL, the
 * functions read at once and may wait: in tests. */
#pragma once

#include "daemon/runtime/children.h"
#include "io/proc.h"
#include "io/proc_answer.h"

struct proc_facts;

struct proc_facts_ops {
        /* As helper_start(). */
        int (*start)(int program_fd, const char *name, pid_t *ret_pid, int *ret_fd);
        /* Called from the loop when all pending questions are answered, or some are late. Never
         * called from within the functions below. */
        void (*arrived)(void *userdata);
        void *userdata;
};

/* ops is copied; event, children and ops->userdata must outlive *ret. Takes ownership of program_fd in all
 * cases. Returns 0 with *ret, to be freed by proc_facts_free(), or -errno. */
int proc_facts_new(sd_event *event, struct children *children, int program_fd,
                   const struct proc_facts_ops *ops, struct proc_facts **ret);
/* Kills the reader. facts may be NULL. Returns NULL. */
struct proc_facts *proc_facts_free(struct proc_facts *facts);

/* Kills the reader without waiting; later questions start a new one. Call before a re-exec, so that no reader
 * outlives this image. facts may be NULL. */
void proc_facts_kill(struct proc_facts *facts);

/* True if no answer is known yet, or none came in time. */
static inline bool proc_facts_is_unknown(int r)
{
        return r == -EINPROGRESS || r == -ETIMEDOUT;
}

struct proc_log {
        int fd; /* borrowed; O_PATH */
        uint64_t start_bytes;
        pid_t other_pid; /* of another process whose lines count; 0: none; LOG_TAIL_ANY_PID */
};

/* Reads the title, as proc_title() does. */
int proc_facts_title(struct proc_facts *facts, const struct proc *proc, char *title, size_t size);
/* Lists the servers that the process is connected to, as proc_peers() does. */
int proc_facts_peers(struct proc_facts *facts, const struct proc *proc, char peers[static PROC_PEERS_MAX]);
#define PROC_ENVIRONMENT_MAX (PROC_TEXT_MAX + 1)
/* Writes the variables that begin with one of PROC_VARIABLES to text: *ret_length bytes and a NUL. Returns
 * the size of the whole environment, as far as it was read; 0 during execve(); or -errno. */
ssize_t proc_facts_environment(struct proc_facts *facts, const struct proc *proc,
                               char text[static PROC_ENVIRONMENT_MAX], size_t *ret_length);
/* Reads the memory in bytes, as proc_mapped_bytes() does. */
int proc_facts_memory(struct proc_facts *facts, const struct proc *proc, uint64_t *ret_pss,
                      uint64_t *ret_private);
/* Reads the log tail of a process, which may have exited, as log_tail_read() does. */
int proc_facts_log_tail(struct proc_facts *facts, const struct proc *proc, const struct proc_log *log,
                        char *lines, size_t size);

/* Drops the answers about this process whose questions were asked before this time. facts may be NULL. */
void proc_facts_expire(struct proc_facts *facts, const struct proc *proc, usec_t before);
/* Blocks until all questions are answered, or until that time. Only for the start, when the loop does not run
 * yet. facts may be NULL. */
void proc_facts_wait(struct proc_facts *facts, usec_t until);

/* True for a reader's process. */
bool proc_facts_is_reader(const struct proc_facts *facts, pid_t pid);
