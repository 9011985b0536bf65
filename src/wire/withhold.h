/* SPDX-License-Identifier: MIT */
/* What is not for those who may do no more than look, and is left out of all that they are told: the lines
 * that workers wrote, commands and environments, the words of a Redis, which may name its users. Each is
 * quoted at the end of a sentence, behind one of these phrases; whoever quotes one uses it. */
#pragma once

#include "base/macro.h"

/* The last lines of a worker; and what stands between two. */
#define WITHHOLD_LAST_LINES     "; its last lines: "
#define WITHHOLD_LAST_LINES_BAR '|'
/* Why a process never ran its command: names that, its PATH, its environment_file. */
#define WITHHOLD_NOT_STARTED "could not be started: "
/* In the words of a template. */
#define WITHHOLD_NOT_FORKED "could not be forked: "
#define WITHHOLD_SHARED     "what all workers would share: "
/* The error that a Redis or a Sentinel answers with, which ends with another quote. */
#define WITHHOLD_ANSWER "it answers '"

/* Is there one of the phrases in text? */
bool withhold_finds(const char *text);

/* Cuts one sentence at the first of them. */
void withhold_end(char *sentence);

/* Cuts all strings of a message as Varlink has it, encoded, of size bytes with its NUL, at these phrases: the
 * sentence stays, what it quotes does not. Returns the size that is left. */
size_t withhold_cut(char *text, size_t size);
