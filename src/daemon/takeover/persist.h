/* SPDX-License-Identifier: MIT */
/* Reads the state that an earlier sqmgr left, and writes it for the next. */
#pragma once

#include "daemon/runtime/runtime.h"
#include "io/statefile.h"

struct search; /* search.h */
struct state;

/* Writes what operators ordered to a file that survives a reboot.
 *
 * A disk may be slow, hung or full, so a process of its own writes: sqmgr never waits for it, and neither a
 * re-exec nor an exit does. At most one process of this sqmgr writes. What changes meanwhile is written once
 * that process has ended, so only the newest orders count. Processes of earlier sqmgrs may still write: they
 * go first (statefile_write_synced()). */
struct order_writer {
        struct runtime *runtime; /* not owned */
        char *path;              /* owned; NULL: orders are not written */
        bool makes_folder;
        struct child child; /* the process that writes */
        usec_t started_at;  /* of that process */
        uint64_t hash;      /* of the orders that were given to it; 0: they are to be written */
        int error;          /* -errno of the last write; -ETIMEDOUT: the disk does not respond; 0: written */
        usec_t since;       /* when the orders could no longer be written */
};

/* Processes in the control group of sqmgr's service that belong to no worker: left by an earlier sqmgr, or by
 * a worker of it, and not adopted. sqmgr adopts the orphans of all processes that it starts itself, so only
 * older processes can be unknown. */
#define UNKNOWN_MAX 16

struct unknown {
        struct unknown_process {
                pid_t pid;
                uint64_t start;
        } list[UNKNOWN_MAX];
        size_t n;
};

struct persist {
        struct runtime *runtime; /* not owned */
        int error;               /* result of the last write; 0: written */
        struct order_writer orders;
        /* The search for workers of an earlier sqmgr. NULL: the search is over. */
        struct search *search;
        struct unknown unknown; /* found once the search was over */
};

/* Writes the state, then lets the commands of started templates begin, even after a failure
 * (templates_begin()). Returns false if the write failed. An error is logged only when it changes. */
bool persist_save(struct persist *persist, usec_t now);
/* Like persist_save() outside of a pass. If the write fails, the next pass tries again. */
void persist_save_now(struct persist *persist, usec_t now);

/* Reads and unpacks the file at path, as statefile_read(). For boot_id and now see state_unpack(). Returns an
 * enum statefile_outcome, for STATEFILE_READ with *ret to be freed by state_free(); STATEFILE_LOST for what
 * is not a valid state, too; or -errno if memory or descriptors are short. */
int state_load(const char *path, const char *boot_id, usec_t now, struct state **ret, char *why,
               size_t why_size);

/* Reads the id of this boot; "" if the kernel does not provide it. Returns boot_id. */
const char *state_load_boot_id(char boot_id[static BOOT_ID_MAX]);

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
/* Lists the processes in the file `procs` (cgroup.procs) that were started before `before`, and are neither a
 * worker or a template, nor a descendant of one, nor in the session of one. Reads nothing for which a process
 * can make its reader wait. */
void unknown_read(const char *procs, uint64_t before, const struct world *world, struct unknown *ret);
/* The same for the control group of our service. Call once the workers of an earlier sqmgr are adopted. */
void unknown_find(const struct world *world, struct unknown *ret);
