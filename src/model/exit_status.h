/* SPDX-License-Identifier: MIT */
/* How a process ended, and the sentence that says so. */
#pragma once

#include "base/macro.h"

/* How a process ended. */
struct exit_status {
        bool known; /* false: not our child, or lost */
        int status; /* exit status, or the signal's number */
        bool by_signal;
        const char *log_tail;     /* that it wrote; NULL: not known */
        uint64_t lines_token;     /* other than 0: they are being read, see observe_log_tail() */
        const char *launch_error; /* why it never ran its command; NULL: it did */
};

/* That in words: "was killed by signal 9 (SIGKILL)". */
void exit_status_text(const struct exit_status *exit, char *text, size_t size);

/* Adds the last lines that it wrote to that sentence, cut to size. What is told is one line: they are set
 * apart by bars. */
void exit_lines_quote(char *text, size_t size, const char *lines);
