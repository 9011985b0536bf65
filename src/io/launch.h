/* SPDX-License-Identifier: MIT */
/* Starts a worker's process as its fleet's settings say, and tells how that went.
 *
 * The parent never waits: what may block (a user data base, a directory on a hung file server) happens in the
 * child, which reports over a socket until its command runs. */
#pragma once

#include "base/usec.h"
#include <sys/resource.h>
#include <sys/types.h>

struct launch_request; /* io/launch_request.h */

struct launched {
        pid_t pid;     /* a child: to be waited for */
        int report_fd; /* owned; for launch_report_read() */
};

/* The name (comm) that the child has until its command runs: whoever finds it so waits for that. */
#define LAUNCH_COMM "sqmgr-launch"

/* Forks the child. Every signal is blocked in the caller meanwhile, so that none of its handlers runs in the
 * child. Returns 0, or -errno where nothing was started. Descriptors 0 to 2 must be open. */
int launch_start(const struct launch_request *request, struct launched *ret);

enum launch_outcome {
        LAUNCH_PENDING, /* the child is still preparing */
        LAUNCH_RUNNING, /* it runs its command, or died on the way by a signal: its exit tells; of an
                         * after_exit: that is done */
        LAUNCH_FAILED,  /* it could not: see error; it exits with status 127 */
};

struct launch_report {
        enum launch_outcome outcome;
        int log_fd; /* owned by the caller from the call on that set it; -1: no log to be read back */
        uint64_t log_start_bytes; /* the log's size when it was opened */
        char *error; /* owned as log_fd: one sentence, without a full stop, printable UTF-8; NULL where there
                      * is none, or no memory for it */
};

#define LAUNCH_REPORT_INIT ((struct launch_report){.outcome = LAUNCH_PENDING, .log_fd = -1})

/* Reads what the child has reported so far into report, which is LAUNCH_REPORT_INIT at first and is handed in
 * again while its outcome is LAUNCH_PENDING; call it when report_fd polls EPOLLIN or EPOLLHUP. Never blocks.
 * Once the outcome is another, close report_fd. Returns 0 or -errno. */
int launch_report_read(int report_fd, struct launch_report *report);
/* Closes and frees what the report owns. */
void launch_report_clear(struct launch_report *report);

/* Does what a start does, as the fleet's user, but for what would be seen: no log is opened, and the command
 * is looked for and not run. Blocks until then, or for that long. Returns 0 or -errno; then report is as of a
 * start, LAUNCH_PENDING where the time was over. */
int launch_rehearse(const struct launch_request *request, usec_t timeout, struct launch_report *report);

/* Raises our own soft limit of open files to the hard one. *ret is the limit before: workers get that, and a
 * successor that is executed in place needs it set again. Returns 0 or -errno. */
int launch_raise_nofile(struct rlimit *ret);
