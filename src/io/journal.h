/* SPDX-License-Identifier: MIT */
/* Reads the last output of processes from the journal in a child process, without blocking the loop. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>
#include <systemd/sd-event.h>

struct quoted; /* wire/quoted.h */

struct journal_query {
        pid_t pids[2]; /* processes whose stdout and stderr to read; 0: none */
        usec_t since;  /* CLOCK_MONOTONIC; earlier output under these pids belongs to other processes */
};

struct journal_read;

/* Called once, from the loop, with lines in the format of log_tail_cut(). There are none if the journal could
 * not be read in time. The callback may free the read. */
typedef void (*journal_read_fn)(const struct quoted *lines, void *userdata);

/* Starts a read, to be freed by journal_read_free() even after the callback. The journal may lag behind the
 * end of a process: the callback comes after about 500 ms, or 1 s if there are no lines. Returns 0 or
 * -errno. */
int journal_read_start(sd_event *event, const struct journal_query *query, journal_read_fn callback,
                       void *userdata, struct journal_read **ret);

/* Frees the read. A callback that is still due is not called. The child process ends by itself. Returns
 * NULL. */
struct journal_read *journal_read_free(struct journal_read *read);
