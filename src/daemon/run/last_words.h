/* SPDX-License-Identifier: MIT */
/* Has the last lines of workers that died read back from the journal, and observes them when they come. */
#pragma once

#include "daemon/run/crew.h"

/* Begins to read what a worker wrote last where that went to the journal; beat_pid: the process that beat, 0
 * where none did. Returns the token of the answer, or 0 where none will come. */
uint64_t last_words_read(struct crew *crew, const struct worker *worker, pid_t beat_pid);
void last_words_forget(struct crew *crew);
