/* SPDX-License-Identifier: MIT */
/* How a process ended, and the sentence that describes this. */
#pragma once

#include "base/macro.h"

struct quoted; /* wire/quoted.h */

/* How a process ended. */
struct exit_status {
        bool known; /* false: not our child, or lost */
        int status; /* exit status, or signal number */
        bool by_signal;
        const struct quoted *log_tail; /* log tail of the process; NULL: not known */
        uint64_t lines_token;          /* not 0: the log tail is still being read, see observe_log_tail() */
        const struct quoted *launch_error; /* why the command was never executed; NULL: it was executed */
};

/* Returns true for status 0. */
bool exit_status_is_success(const struct exit_status *exit);
/* Writes the status in words: "was killed by signal 9 (SIGKILL)". */
void exit_status_text(const struct exit_status *exit, char *text, size_t size);
/* Returns constant text for the errno of a start. */
const char *start_error_text(int error);
