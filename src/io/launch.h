/* SPDX-License-Identifier: MIT */
/* Starts a worker's process as its fleet's settings say, and tells how that went.
 *
 * The parent never waits: what may block (a user data base, a directory on a hung file server) happens in the
 * child, which reports over a socket until its command runs. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include <sys/resource.h>
#include <sys/types.h>

struct fleet_settings;

/* How a worker ended, for after_exit: as systemd tells an ExecStopPost=. */
struct launch_end {
        pid_t pid;
        const char *code; /* "exited", "killed" or "unknown" */
        char status[16];  /* the exit status, or the signal's name; "" where it is unknown */
        usec_t timeout;
};

/* A template is to be started, from which workers are forked. */
/* Its command begins once "go" has come by the socket. */
struct launch_template {
        int fd;             /* its socket; for the child alone */
        const char *script; /* the Ruby file that makes its command one; no blank in it */
};

struct launch_request {
        const struct fleet_settings *fleet;
        unsigned index;
        uint64_t generation;
        usec_t started_at; /* by which this start is known from all others */
        const char *instance;
        struct rlimit nofile;          /* sqmgr's original one: see launch_raise_nofile() */
        char *const *base_environment; /* sqmgr's own, NULL-terminated; filtered before it is handed on */
        const char *status_parent;     /* where status directories are; NULL: it needs none */
        bool rehearsal;                /* see launch_rehearse() */
        const struct launch_end *end;  /* its after_exit is run, and not the worker; NULL else */
        const char *release;           /* its directory is looked at, and nothing run: see below; NULL: not */
        const struct launch_template *template; /* it becomes one of these, and not a worker; NULL else */
};

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

#define LAUNCH_ERROR_MAX 1024

struct launch_report {
        enum launch_outcome outcome;
        int log_fd; /* owned by the caller from the call on that set it; -1: no log to be read back */
        uint64_t log_start_bytes; /* the log's size when it was opened */
        char *error; /* owned as log_fd: one sentence, without a full stop, printable UTF-8; NULL where there
                      * is none, or no memory for it */
};

#define LAUNCH_REPORT_INIT ((struct launch_report){.outcome = LAUNCH_PENDING, .log_fd = -1})

/* With `release` nothing of the fleet's is run: as its user, its directory is resolved, and must end in that
 * path. What is wrong is reported as an error, and LAUNCH_RUNNING means that all is well. */

/* Reads what the child has reported so far into report, which is LAUNCH_REPORT_INIT at first and is handed in
 * again while its outcome is LAUNCH_PENDING; call it when report_fd polls EPOLLIN or EPOLLHUP. Never blocks.
 * Once the outcome is another, close report_fd. Returns 0 or -errno. */
int launch_report_read(int report_fd, struct launch_report *report);

/* Does what a start does, as the fleet's user, but for what would be seen: no log is opened, and the command
 * is looked for and not run. Blocks until then, or for that long. Returns 0 or -errno; then report is as of a
 * start, LAUNCH_PENDING where the time was over. */
int launch_rehearse(const struct launch_request *request, usec_t timeout, struct launch_report *report);

/* Raises our own soft limit of open files to the hard one. *ret is the limit before: workers get that, and a
 * successor that is executed in place needs it set again. Returns 0 or -errno. */
int launch_raise_nofile(struct rlimit *ret);
