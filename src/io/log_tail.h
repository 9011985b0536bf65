/* SPDX-License-Identifier: MIT */
/* What a process wrote last, cut to what a sentence can quote. */
#pragma once

#include "base/macro.h"

#define LOG_TAIL_MAX       5
#define LOG_TAIL_MAX_BYTES 800

/* How far back to look for lines that are no frames of a backtrace. */
#define LOG_TAIL_LOOK_BACK_BYTES ((size_t)16 * 1024)

/* Cuts text, which it spoils, down to its last lines: at most LOG_TAIL_MAX of them and
 * LOG_TAIL_MAX_BYTES, or size - 1 bytes if fewer, made printable and without colours, separated by
 * newlines. Frames of backtraces are left out: indented lines, where there are others, and those of Ruby
 * behind the first. */
void log_tail_cut(char *text, size_t length, char *lines, size_t size);
/* Reads back what was written to a log since it was start_bytes long, so cut. "" where there is nothing, or
 * the log is no regular file. Workers that share a log share its lines. Returns 0 or -errno. */
int log_tail_read(int log_fd, uint64_t start_bytes, char *lines, size_t size);
