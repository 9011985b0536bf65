/* SPDX-License-Identifier: MIT */
/* Starts a worker's process according to its fleet's settings, and reports the outcome.
 *
 * The parent never waits. Blocking steps (the user database, a directory on a hung file server) happen in the
 * child, which reports over a socket until the command runs. */
#pragma once

#include "base/usec.h"
#include "settings/redis_url.h"
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

struct launch_request; /* privileged/launch_request.h */
struct quoted;         /* wire/quoted.h */

struct launched {
        pid_t pid;     /* a child: the caller must reap it */
        int report_fd; /* owned; for launch_report_read() */
        int child_fd;  /* owned; to be closed once the report says that the child is separate; -1: none. Only
                        * with request->shares_descriptors */
};

/* The name (comm) of the child until its command runs. */
#define LAUNCH_COMM "sqmgr-launch"

/* Forks the child. Blocks all signals in the caller during the fork, so no signal handler runs in the child.
 * Descriptors 0 to 2 must be open. Returns 0, or -errno if nothing was started. */
int launch_start(const struct launch_request *request, struct launched *ret);

enum launch_outcome {
        LAUNCH_PENDING, /* the child is still preparing */
        LAUNCH_RUNNING, /* the command runs, or a signal killed the child before that: its exit status shows
                         * which. For after_exit: the command has finished */
        LAUNCH_FAILED,  /* the command could not run: see error; the child exits with status 127 */
};

struct launch_report {
        enum launch_outcome outcome;
        bool separate;            /* the child has its own descriptors by now: close launched.child_fd, and
                                   * read again */
        int log_fd;               /* O_PATH; owned by the caller once set; -1: there is no log to read back */
        uint64_t log_start_bytes; /* size of the log when it was opened */
        uid_t log_uid;            /* user that opened the log */
        gid_t log_gid;
        struct redis_comparison redis; /* of the worker's environment with request->redis_url */
        struct quoted *error; /* owned by the caller once set: one sentence without a full stop, which names
                               * commands and paths; NULL if there is none, or memory is short */
};

#define LAUNCH_REPORT_INIT ((struct launch_report){.outcome = LAUNCH_PENDING, .log_fd = -1})

/* Reads the child's messages into report. Initialize report to LAUNCH_REPORT_INIT, and call again when
 * report_fd polls EPOLLIN or EPOLLHUP while the outcome is LAUNCH_PENDING. With any other outcome, close
 * report_fd. Never blocks. Returns 0 or -errno. */
int launch_report_read(int report_fd, struct launch_report *report);
/* Closes and frees what the report owns. */
void launch_report_clear(struct launch_report *report);

/* Makes a dry run of a start as the fleet's user: opens no log, and locates the command without running it.
 * Blocks until done, at most for timeout. Initialize report to LAUNCH_REPORT_INIT, and free it by
 * launch_report_clear(). Returns 0 with the report of a start, LAUNCH_PENDING after a timeout; or -errno. The
 * child is killed; one that hangs in a file system is left for the caller to reap. */
int launch_rehearse(const struct launch_request *request, usec_t timeout, struct launch_report *report);

/* Raises our soft limit of open files to the hard limit. Returns 0 with the earlier limit in *ret, or -errno.
 * Pass the earlier limit to workers, and to a new sqmgr that is executed in place of this one. */
int launch_raise_nofile(struct rlimit *ret);
