/* SPDX-License-Identifier: MIT */
/* Reads files of processes that can make their reader wait: titles, environments, mapped memory, and log
 * tails.
 *
 * The loop asks, and never waits. For each user there is a process that reads as this user
 * (io/proc_reader.h), and a second one with CAP_SYS_PTRACE once the rights of the user do not suffice. A
 * reader that is late is killed and started again after a pause that grows, so a user delays only what is
 * asked of its own processes.
 *
 * Each function returns 0, or -errno:
 *
 * - -EINPROGRESS: asked; once `arrived` is called, the next call returns the answer
 * - -ETIMEDOUT: no answer in time: nothing is known
 *
 * An answer is returned for half a second; after that, the next call asks again. With facts NULL, the
 * functions read at once: in tests, and in a sqmgr without root's rights, all of whose processes are its
 * user's own. */
#pragma once

#include "base/usec.h"
#include "daemon/runtime/children.h"
#include "io/proc.h"
#include "io/proc_question.h"
#include "io/proc_reader.h"
#include "privileged/proc_inspect.h"
#include <systemd/sd-event.h>

struct proc_facts;

struct proc_facts_ops {
        /* As proc_reader_start(). */
        int (*start)(int program_fd, const struct proc_reader_user *user, bool privileged, pid_t *ret_pid,
                     int *ret_fd);
        /* Called from the loop when a user's questions are answered, or late. */
        void (*arrived)(void *userdata);
        void *userdata;
};

/* event, children and what ops points to must outlive *ret. Takes program_fd in all cases. Returns 0 or
 * -errno. */
int proc_facts_new(sd_event *event, struct children *children, int program_fd,
                   const struct proc_facts_ops *ops, struct proc_facts **ret);
/* Kills the readers. facts may be NULL. Returns NULL. */
struct proc_facts *proc_facts_free(struct proc_facts *facts);

/* Kills the readers, which are started again when needed: before a re-exec, which a reader that waits for a
 * file server would survive. facts may be NULL. */
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

/* Asks the reader of that user. Returns the answer with 0, or -errno as above. log: for PROC_LOG_TAIL; else
 * NULL. */
int proc_facts_ask(struct proc_facts *facts, enum proc_subject subject, const struct proc *proc, uid_t user,
                   const struct proc_log *log, const struct proc_reply **ret);
/* user: whose reader is asked: of a worker's processes, the user of its main process. */
int proc_facts_title(struct proc_facts *facts, const struct proc *proc, uid_t user, char *title, size_t size);
/* The servers that the process is connected to, as proc_peers() lists them: an answer of other bytes is none.
 */
int proc_facts_peers(struct proc_facts *facts, const struct proc *proc, uid_t user,
                     char peers[static PROC_PEERS_MAX]);
/* Returns the number of bytes read, with the variables that begin with PROC_VARIABLE_PREFIX in text at least;
 * 0 during execve(); or -errno. text is terminated by a NUL beyond *ret_length. */
ssize_t proc_facts_environment(struct proc_facts *facts, const struct proc *proc, uid_t user, char *text,
                               size_t size, size_t *ret_length);
int proc_facts_memory(struct proc_facts *facts, const struct proc *proc, uid_t user, uint64_t *ret_pss,
                      uint64_t *ret_private);
/* Reads the log tail of a process, which may have exited. */
int proc_facts_log_tail(struct proc_facts *facts, const struct proc *proc, uid_t user,
                        const struct proc_log *log, char *lines, size_t size);

/* An answer to a question that was asked before this time does not count. */
void proc_facts_expire(struct proc_facts *facts, const struct proc *proc, usec_t before);
/* Remembers gid and groups of this user, which cannot be read any more once its processes were reaped. A
 * user's groups may change: those of the process that was started last count, and a reader that has others is
 * replaced. facts may be NULL. */
void proc_facts_know_user(struct proc_facts *facts, const struct proc_reader_user *user);
/* Remembers the same for the user of proc, unless that user is known. proc must not be reaped yet. facts may
 * be NULL. */
void proc_facts_know_user_of(struct proc_facts *facts, const struct proc *proc, uid_t uid);
/* Waits until all questions are answered, or that time: for the start, when the loop does not run yet. */
void proc_facts_wait(struct proc_facts *facts, usec_t until);

/* True for a reader's process. */
bool proc_facts_is_reader(const struct proc_facts *facts, pid_t pid);
