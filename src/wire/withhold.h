/* SPDX-License-Identifier: MIT */
/* Removes text that read-only clients may not see: output of workers, commands and environments, and error
 * replies of Redis, which may name Redis users.
 *
 * The text is quoted at the end of a sentence, after one of these phrases. Every sentence that quotes such
 * text must use one of them. */
#pragma once

#include "base/macro.h"

/* The log tail of a worker, and the separator between two of its lines. */
#define WITHHOLD_LAST_LINES     "; its last lines: "
#define WITHHOLD_LAST_LINES_BAR '|'
/* Why a process never ran its command: the text names the command, its PATH or its environment_file. */
#define WITHHOLD_NOT_STARTED "could not be started: "
/* Errors that a template reports. */
#define WITHHOLD_NOT_FORKED "could not be forked: "
#define WITHHOLD_SHARED     "what all workers would share: "
/* The error reply of a Redis or a Sentinel, which ends with another quote. */
#define WITHHOLD_ANSWER "it answers '"

/* Returns true if text contains one of the phrases. */
bool withhold_finds(const char *text);

/* Cuts one sentence at the first phrase in it. */
void withhold_end(char *sentence);

/* Cuts all strings of an encoded Varlink message of size bytes, its NUL included, at these phrases. The
 * sentence stays, the quoted text is removed. Returns the new size. */
size_t withhold_cut(char *text, size_t size);
