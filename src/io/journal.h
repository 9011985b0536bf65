/* SPDX-License-Identifier: MIT */
/* Reads back from the journal what processes wrote last, without blocking the loop: a child of its own asks.
 */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include <sys/types.h>
#include <systemd/sd-event.h>

struct journal_query {
        pid_t pids[2]; /* what any of these wrote to its stdout and stderr; 0: none */
        usec_t since;  /* CLOCK_MONOTONIC: what the pids wrote earlier was another process's */
};

struct journal_read;

/* Called once, from the loop, with lines as log_tail_cut() leaves them; "" where there are none, or the
 * journal could not be read in time. The read may be freed in it. */
typedef void (*journal_read_fn)(const char *lines, void *userdata);

/* Begins to read, to be freed by journal_read_free(), also after its answer. The journal may lag behind the
 * end of a process: so the answer takes some 500 ms, and 1 s where there are no lines. Returns 0 or -errno.
 */
int journal_read_start(sd_event *event, const struct journal_query *query, journal_read_fn callback,
                       void *userdata, struct journal_read **ret);

/* Ends it; where no answer has come, none will. The child ends by itself. Returns NULL. */
struct journal_read *journal_read_free(struct journal_read *read);
