/* SPDX-License-Identifier: MIT */
/* Heartbeats in files: finds the file of a worker in the directory of its fleet, and reads it. */
#pragma once

#include "daemon/runtime/runtime.h"
#include "io/status_dir.h"
#include "model/heartbeat_info.h"

/* State of the search for a worker's file, kept between polls. */
struct status_file {
        /* The whole process tree was searched once: a file that appears from now on is new. */
        bool searched;
        /* Processes of the tree already tried; the next poll continues after them. */
        unsigned passed;
        /* A process whose file existed when the search began: the file counts once it changes. 0: none. */
        pid_t mark_pid;
        uint64_t mark_usec; /* the heartbeat of mark_pid at that time */
        bool met;           /* true once the running search has met a file, or one that is begun */
        bool absent;        /* true if the last poll has ended a search of the whole tree that met none */
};

/* State of one poll of several workers. */
struct status_poll {
        const struct fleet *fleet; /* of the directory; NULL: none is open */
        int dir_fd;                /* -errno: cannot be opened */
};

#define STATUS_POLL_INIT ((struct status_poll){.dir_fd = -1})

/* Reads the heartbeat of the worker. Returns true with *ret, to be freed by heartbeat_record_clear(), and the
 * pid of its process in *ret_pid. Returns false if no heartbeat counts, and observes why. */
bool status_files_read(struct status_poll *poll, struct status_file *file, struct worker *worker,
                       pid_t *ret_pid, struct heartbeat_record *ret);
/* Closes the directory. The struct can be used again. */
void status_poll_end(struct status_poll *poll);

/* Removes the heartbeat file of the worker. Call when its process has exited. */
void status_files_drop(const struct worker *worker);
