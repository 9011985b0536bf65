/* SPDX-License-Identifier: MIT */
/* Queries to the server of a link that several parts of sqmgr need. */
#pragma once

#include "daemon/runtime/links.h"

/* Reads the queues into answer->queues. due: also when their scheduled jobs fall due. names: the queues to
 * read, with how long their jobs take; a NUL follows each name, and another one the last. NULL: all queues,
 * sorted by name. Returns as reader_ask(). */
int link_read_queues(const struct link *link, const char *names, bool due, reader_answer_fn callback,
                     void *userdata);

struct running_jobs; /* a reading in progress */

/* lists: one per identity, in the same order, valid until the callback returns; move out what must survive.
 * NULL: none could be read. error: some lists could not be read; NULL: all were. Called once, never from
 * within link_read_running_jobs(). The reading is freed after the callback returns. */
typedef void (*running_jobs_fn)(struct job_list *lists, const struct error_report *error, void *userdata);

struct running_jobs_request {
        const char *const *identities;
        size_t n;          /* number of identities, at least one */
        bool with_entries; /* the jobs keep their entries */
};

/* Reads the running jobs of identities. Returns 0 with *ret, or as reader_ask(): done is not called. */
int link_read_running_jobs(const struct link *link, const struct running_jobs_request *request,
                           running_jobs_fn done, void *userdata, struct running_jobs **ret);
/* Cancels a reading: done is not called. Takes NULL. Returns NULL. */
struct running_jobs *running_jobs_cancel(struct running_jobs *running_jobs);
