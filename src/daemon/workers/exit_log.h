/* SPDX-License-Identifier: MIT */
/* Reads the log tail of exited workers from the journal, and observes it when it arrives. */
#pragma once

#include "base/macro.h"
#include "daemon/runtime/runtime.h"
#include <sys/types.h>
#include <systemd/sd-event.h>

struct journal_read;
struct quoted; /* wire/quoted.h */
struct exit_status;
struct launch_report;

struct journal_query {
        pid_t pids[2]; /* processes whose stdout and stderr to read; 0: none */
        usec_t since;  /* CLOCK_MONOTONIC; earlier output under these pids belongs to other processes */
};

/* Called once, from the loop, with lines in the format of log_tail_cut(). There are none if the journal could
 * not be read in time. The callback may free the read. */
typedef void (*journal_read_fn)(const struct quoted *lines, void *userdata);

/* The process whose log tail is read. */
struct exit_log_source {
        const struct fleet *fleet;
        const struct proc *main;
        pid_t pids[2]; /* 0 or duplicates: fewer pids */
        usec_t since;
};

/* Asks for the log tail of a process before it is reaped: the answer arrives meanwhile. */
void exit_log_ask(struct runtime *runtime, const struct exit_log_source *of,
                  const struct launch_report *report);
/* Adds details to exit: why the command never ran, from the launch report; and, unless the exit was expected,
 * the log tail. If neither is available for an unexpected exit, sets lines_token for a read of the journal;
 * observe_log_tail() follows. exit then points into report and lines.
 *
 * Returns 0; or -EINPROGRESS with exit unchanged: call again when the proc reader has answered
 * (daemon/runtime/proc_facts.h). */
int exit_log_add(struct runtime *runtime, const struct exit_log_source *of,
                 const struct launch_report *report, bool expected, struct quoted *lines,
                 struct exit_status *exit);
/* Cancels all pending reads of the journal. */
void exit_log_forget(struct runtime *runtime);

/* Starts a read, to be freed by journal_read_free() even after the callback. The journal may lag behind the
 * end of a process: the callback comes after about 500 ms, or 1 s if there are no lines. Returns 0 or
 * -errno. */
int journal_read_start(sd_event *event, const struct journal_query *query, journal_read_fn callback,
                       void *userdata, struct journal_read **ret);
/* Frees the read. A callback that is still due is not called. The child process ends by itself. Returns
 * NULL. */
struct journal_read *journal_read_free(struct journal_read *read);
