/* SPDX-License-Identifier: MIT */
/* The last output of a process, cut to the size of a quotation. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

#define LOG_TAIL_MAX       5
#define LOG_TAIL_MAX_BYTES 800
#define LOG_TAIL_ANY_PID   ((pid_t)-1)

/* How far back to search for lines that are not backtrace frames. */
#define LOG_TAIL_LOOK_BACK_BYTES ((size_t)16 * 1024)

/* Copies the log tail of text into lines and modifies text. Copies at most LOG_TAIL_MAX lines, the oldest
 * first, and at most LOG_TAIL_MAX_BYTES or size - 1 bytes. Lines are separated by newlines, printable, and
 * without colors. Backtrace frames are omitted: indented lines if there are others, and Ruby's frames after
 * the first. A line that occurs more than once is copied once, where it occurs last, with the number. pids:
 * the pids of the process; only lines that name one of them as their author are copied, and the error of a
 * Node.js that cannot find sqmgr's file. If pids[0] is 0 or pids[1] is LOG_TAIL_ANY_PID, all lines are. */
void log_tail_cut(char *text, size_t length, const pid_t pids[static 2], char *lines, size_t size);
