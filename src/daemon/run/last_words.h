/* SPDX-License-Identifier: MIT */
/* Has the last lines of workers that died read back from the journal, and observes them when they come. */
#pragma once

#include "daemon/run/crew.h"

/* Whose they are. */
struct last_words_of {
        const struct fleet *fleet;
        pid_t pids[2]; /* 0, or one of them twice: there are fewer */
        usec_t since;
};

/* Begins to read what a process of a fleet wrote last where that went to the journal. Returns the token of
 * the answer, or 0 where none will come. */
uint64_t last_words_read(struct crew *crew, const struct last_words_of *of);
void last_words_forget(struct crew *crew);
