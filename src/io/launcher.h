/* SPDX-License-Identifier: MIT */
/* Starts processes that share our memory until they execute a program. We do not wait for that. */
#pragma once

#include "io/launch_plan.h"
#include "io/ledger_file.h"

/* The name (comm) of a child until its command runs, but while it executes sqmgr-start. */
#define LAUNCH_COMM "sqmgr-launch"

/* True for the name of a child whose command does not run yet. */
bool launch_is_name_of_start(const char *comm);

/* A process to be started. Descriptors and the ledger are borrowed until launcher_start() returns. */
struct launch_job {
        struct launch_plan plan;
        char *block;     /* owned; what the plan points to */
        size_t size;     /* of block */
        char **pointers; /* owned */
        int report_fd, block_fd, template_fd,
                program_fd;               /* see LAUNCH_REPORT_FD; -1: none. block_fd is owned */
        int input_fd, output_fd;          /* become the standard streams; -1: those of the plan */
        unsigned seconds;                 /* SIGALRM ends the process after this time; 0: never */
        struct ledger_claim claim;        /* the record of this start; zeros: none */
        const struct ledger_file *ledger; /* NULL: none */
};

/* Makes a job with a copy of the plan, for launcher_start(). Returns 0 or -errno. */
int launch_job_new(const struct launch_plan *plan, struct launch_job **ret);
void launch_job_free(struct launch_job *job);
DEFINE_CLEANUP(struct launch_job *, launch_job_free)
#define _cleanup_launch_job_ _cleanup_(launch_job_free_pointer)

/* Finds sqmgr-start, and reserves descriptors. Call early: a start copies all descriptors below these.
 * Returns 0 or -errno: a start that needs sqmgr-start will fail. */
int launcher_prepare(void);

/* Call once the actions of signals are set, if a process may have been started before: a start resets those
 * that it knows of. 64 system calls, which are a good part of a start. */
void launcher_find_actions(void);

/* Starts the process: all signals have their default actions and none is blocked, in a session of its own.
 * Executes program_fd, if any, with the arguments of the plan; else the command, after the steps of the plan.
 * Returns its pid once it has claimed its start, and has descriptors of its own; or -errno, -EBUSY: too many
 * starts hang in a file system. Takes the job. For the main thread, which is the parent: its end is ours. */
pid_t launcher_start(struct launch_job *job);

/* Frees what no start needs any more: jobs, and threads on whose stack no child runs. Call now and then. */
void launcher_rest(void);
