/* SPDX-License-Identifier: MIT */
/* Has the last lines of workers that died read back from the journal, and observes them when they come. */
#pragma once

#include "daemon/runtime/runtime.h"
#include "io/log_tail.h"

struct exit_status;
struct launch_report;

/* Whose they are. */
struct exit_log_source {
        const struct fleet *fleet;
        pid_t pids[2]; /* 0, or one of them twice: there are fewer */
        usec_t since;
};

/* Adds to exit what else the launch report and the log tell of that exit: why the command never ran, its last
 * lines, or, unless the exit was expected, the token of lines that are being read. exit points into report
 * and lines then. */
void exit_log_add(struct runtime *runtime, const struct exit_log_source *of,
                  const struct launch_report *report, bool expected,
                  char lines[static LOG_TAIL_MAX_BYTES + 1], struct exit_status *exit);
void exit_log_forget(struct runtime *runtime);
