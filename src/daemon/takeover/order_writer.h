/* SPDX-License-Identifier: MIT */
/* Writes what operators ordered to a file that survives a reboot.
 *
 * A disk may be slow, hung or full, so a process of its own writes: sqmgr never waits for it, and neither a
 * re-exec nor an exit does. At most one process of this sqmgr writes. What changes meanwhile is written once
 * that process has ended, so only the newest orders count. Processes of earlier sqmgrs may still write: they
 * go first (statefile_write_synced()). */
#pragma once

#include "daemon/runtime/runtime.h"

struct order_writer {
        struct runtime *runtime; /* not owned, as boot_id */
        const char *boot_id;
        char *path; /* owned; NULL: orders are not written */
        bool makes_folder;
        struct child child; /* the process that writes */
        usec_t started_at;  /* of that process */
        uint64_t hash;      /* of the orders that were given to it; 0: they are to be written */
        int error;          /* -errno of the last write; -ETIMEDOUT: the disk does not respond; 0: written */
        usec_t since;       /* when the orders could no longer be written */
};

/* Starts to write the orders if they have changed. */
void order_writer_save(struct order_writer *writer, usec_t now);
/* Retries a failed write, and reports a disk that does not respond. Call at each regular poll. */
void order_writer_poll(struct order_writer *writer, usec_t now);
/* Ends the process that writes: the next image writes all orders again. Without one, they are tried again as
 * after a failure. */
void order_writer_kill(const struct order_writer *writer);
/* Starts to write the last orders of this sqmgr, instead of those that a process still writes. */
void order_writer_finish(struct order_writer *writer, usec_t now);
/* Writes nothing more. A process that writes is on its own from now on. */
void order_writer_end(struct order_writer *writer);

/* Returns why the orders cannot be written: a static string; NULL: they are written. */
const char *order_writer_why(const struct order_writer *writer);
