/* SPDX-License-Identifier: MIT */
/* Reads the state that an earlier sqmgr left, and writes it for the next. */
#pragma once

#include "daemon/runtime/runtime.h"
#include "io/statefile.h"

struct state;

/* Writes the state, then lets the commands of started templates begin, even after a failure
 * (templates_begin()). Returns false if the write failed. An error is logged only when it changes. */
bool persist_save(struct runtime *runtime, usec_t now);
/* Like persist_save() outside of a pass. If the write fails, the next pass tries again. */
void persist_save_now(struct runtime *runtime, usec_t now);

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
