/* SPDX-License-Identifier: MIT */
/* Heartbeats in files: finds which file in the directory of its fleet is a worker's, and reads it. */
#pragma once

#include "daemon/runtime/runtime.h"
#include "io/status_dir.h"

/* What is remembered of a worker's file from look to look. */
struct status_file {
        bool searched;   /* its tree was gone through since it has been looked for: what comes now is new */
        unsigned passed; /* processes of the tree that are done with; the next look goes on behind them */
        pid_t mark_pid;  /* one was there as the search began: it counts once it changes; 0: none was */
        uint64_t mark_usec; /* its beat */
};

/* One look at those of several workers. */
struct status_poll {
        const struct fleet *fleet; /* dir is that of its workers that run as uid; NULL: none is open */
        uid_t uid;
        struct status_dir dir;
        int error; /* of opening it */
};

#define STATUS_POLL_INIT ((struct status_poll){.dir = STATUS_DIR_NONE})

/* Reads the beat of the worker. Returns true with *ret, and the process that it is of in *ret_pid; false
 * where there is none that counts, and then observes why. */
bool status_files_read(struct status_poll *look, struct status_file *file, struct worker *worker,
                       pid_t *ret_pid, struct heartbeat *ret);
void status_poll_end(struct status_poll *look);

/* The process that beat for the worker is gone, and leaves its file behind. */
void status_files_drop(const struct worker *worker);

/* What an earlier sqmgr has left is to be tidied, unless no fleet has such directories: then what stands in
 * their place is another's. */
void status_files_begin(struct runtime *runtime);

/* Removes the directories of fleets without workers, where any may have come to that. Not while workers are
 * still looked for. */
void status_files_tidy(struct runtime *runtime);
