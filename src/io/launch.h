/* SPDX-License-Identifier: MIT */
/* Starts a worker's process according to its fleet's settings, and reports the outcome.
 *
 * The parent waits for no file. Blocking steps (a directory on a hung file server) happen
 * in the child, which reports over a socket until the command runs. */
#pragma once

#include "io/launch_plan.h"
#include "io/ledger_file.h"
#include "settings/redis_url.h"

struct fleet_settings;
struct quoted; /* wire/quoted.h */

/* How a worker ended, for after_exit: the values that systemd passes to ExecStopPost=. */
struct launch_end {
        pid_t pid;
        const char *code; /* "exited", "killed" or "unknown" */
        char status[16];  /* the exit status, or the name of the signal; "" if unknown */
        usec_t timeout;
};

/* Everything is borrowed until launch_start() returns.
 *
 * - LAUNCH_TEMPLATE: a template, from which workers are forked. Its command runs once "go" was received over
 *   the socket
 * - LAUNCH_RELEASE: no command runs: the child resolves the fleet's directory. The result must end in that
 *   path, else the report is LAUNCH_FAILED; LAUNCH_RUNNING means success
 * - LAUNCH_REHEARSAL: see launch_rehearse() */
struct launch_request {
        enum launch_kind kind; /* up to LAUNCH_REHEARSAL */
        const struct fleet_settings *fleet;
        unsigned index;
        uint64_t generation;
        usec_t started_at;                /* identifies this start */
        struct ledger_claim claim;        /* the record of this start; zeros: none */
        const struct ledger_file *ledger; /* contains the claimed record; NULL: no ledger */
        const char *instance;
        const char *unique_host;       /* see model/names.h; NULL or "": the worker gets none */
        struct rlimit nofile;          /* the limit before launch_raise_nofile() */
        char *const *base_environment; /* sqmgr's own, NULL-terminated; filtered before it is passed to the
                                        * command */
        const char *status_parent;     /* parent of the status directories; NULL: the worker needs none */
        const char *redis_url;         /* the Redis with the heartbeats; NULL: not known, or none */
        const struct launch_end *end;  /* LAUNCH_AFTER_EXIT; else NULL */
        const char *release;           /* LAUNCH_RELEASE: the path */
        const char *outcomes_script;   /* for fleet_settings_load_outcomes(): the Ruby file, no blanks in the
                                          path; NULL: none */
        const char *shims;             /* the folder of traits.shim; NULL: the worker loads none */
        int template_fd;               /* LAUNCH_TEMPLATE: the socket's end for the child only */
        const char *template_script; /* LAUNCH_TEMPLATE: the Ruby file that turns the command into a template;
                                      * no blanks in the path */
};

struct launched {
        pid_t pid;     /* a child: the caller must reap it */
        int report_fd; /* owned; for launch_report_read() */
};

/* Starts the child (io/launcher.h). Descriptors 0 to 2 must be open. Returns 0, or -errno if nothing
 * was started. */
int launch_start(const struct launch_request *request, struct launched *ret);

enum launch_outcome {
        LAUNCH_PENDING, /* the child is still preparing */
        LAUNCH_RUNNING, /* the command runs, or a signal killed the child before that: its exit status shows
                         * which. For after_exit: the command has finished */
        LAUNCH_FAILED,  /* the command could not run: see error; the child exits with status 127 */
};

struct launch_report {
        enum launch_outcome outcome;
        int log_fd;               /* O_PATH; owned by the caller once set; -1: there is no log to read back */
        uint64_t log_start_bytes; /* size of the log when it was opened */
        struct redis_comparison redis; /* of the worker's environment with request->redis_url */
        int shim_error; /* errno: why the worker starts without its shim. EINVAL: its path cannot be passed
                         * on; 0: the shim is loaded, or there is none */
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

/* Makes a dry run of a start: opens no log, and locates the command without running it.
 * Blocks until done, at most for timeout. Initialize report to LAUNCH_REPORT_INIT, and free it by
 * launch_report_clear(). Returns 0 with the report of a start, LAUNCH_PENDING after a timeout; or -errno. The
 * child is killed; one that hangs in a file system is left for the caller to reap. */
int launch_rehearse(const struct launch_request *request, usec_t timeout, struct launch_report *report);

/* Raises our soft limit of open files to the hard limit. Returns 0 with the earlier limit in *ret, or -errno.
 * Pass the earlier limit to workers, and to a new sqmgr that is executed in place of this one. */
int launch_raise_nofile(struct rlimit *ret);
