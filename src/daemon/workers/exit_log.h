/* SPDX-License-Identifier: MIT */
/* Reads the log tail of exited workers from the journal, and observes it when it arrives. */
#pragma once

#include "daemon/runtime/runtime.h"

struct quoted; /* wire/quoted.h */
struct exit_status;
struct launch_report;

/* The process whose log tail is read. */
struct exit_log_source {
        const struct fleet *fleet;
        const struct proc *main;
        pid_t pids[2]; /* 0 or duplicates: fewer pids */
        usec_t since;  /* CLOCK_MONOTONIC */
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
