/* SPDX-License-Identifier: MIT */
/* The content of the rows of one batch: the workers with their heartbeats, the jobs that they run, and the
 * queues. Pure. */
#pragma once

#include "database/database.h"
#include "model/queues.h"
#include "model/server_facts.h"
#include "model/worker.h"

struct database_format; /* frameworks/database_format.h */

/* The part of a worker's metadata or state that is read. Longer ones are damaged. */
#define DATABASE_DOCUMENT_MAX      8192
#define DATABASE_DOCUMENT_MAX_TEXT "8192"

/* A worker. */
struct database_process {
        char *identity; /* owned: HOST:PID:... */
        size_t host_len;
        pid_t pid;
        struct heartbeat heartbeat;
        char *queues; /* owned: names as in struct heartbeat_info; NULL: none */
        size_t queues_length;
};

/* The jobs of a worker whose jobs are asked for. */
struct database_work {
        char *identity; /* owned */
        struct job_list list;
};

struct database_view {
        const struct database_format *format;
        struct database_process *processes; /* owned; sorted by identity after database_view_sort() */
        size_t n_processes, processes_allocated;
        struct database_work *works; /* owned; sorted by identity after each database_view_ask_work() */
        size_t n_works, works_allocated;
        struct queues queues; /* owned; sorted by name after database_view_sort() */
        struct database_facts facts;
        size_t released; /* see DATABASE_RELEASED */
        size_t compared; /* bytes of queue names that were compared with new ones */
};

void database_view_clear(struct database_view *view);

/* Adds a worker, of which identity is `host:pid:rest`. A worker that sqmgr could not identify is left out.
 * Returns 0 with *ret, valid until the next call, or NULL; or -ENOMEM. */
int database_view_add(struct database_view *view, const struct field *host, const struct field *pid,
                      const struct field *rest, struct database_process **ret);
/* The cost of the comparison of queue names, in bytes: names beyond are left out. */
#define DATABASE_COMPARED_MAX ((size_t)128 * 1024 * 1024)
/* Adds queue names to a worker of the view: each name of a list that is separated by commas, without spaces
 * around it. Names that the worker has already are left out, and those beyond HEARTBEAT_QUEUES_MAX. Returns 0
 * or -ENOMEM. */
int database_view_add_queues(struct database_view *view, struct database_process *process, const char *names,
                             size_t length);
/* Adds one name as it is. */
int database_view_add_queue(struct database_view *view, struct database_process *process, const char *name,
                            size_t length);
/* Sorts workers and queues. */
void database_view_sort(struct database_view *view);
/* Returns the worker, after database_view_sort(); NULL: none. */
struct database_process *database_view_find(const struct database_view *view, const char *identity);

/* Has the jobs of a worker read. Returns 0; -EEXIST: they are asked for already; or
 * -ENOMEM. */
int database_view_ask_work(struct database_view *view, const char *identity);
/* Returns the work of an identity; NULL: not asked for. */
struct database_work *database_view_find_work(const struct database_view *view, const char *identity);

/* Take a row of DATABASE_JOBS, and so on. A row that is not understood adds nothing, or is counted as
 * unknown. Return 0 or -ENOMEM. */
int database_view_take_job(struct database_view *view, const struct database_row *row);
int database_view_take_queue(struct database_view *view, const struct database_row *row);
int database_view_take_counts(struct database_view *view, const struct database_row *row);
int database_view_take_facts(struct database_view *view, const struct database_row *row);
int database_view_take_released(struct database_view *view, const struct database_row *row);

/* Returns the queue of this name, after database_view_sort(); NULL: none. */
const struct queue *database_view_find_queue(const struct database_view *view, const char *name);
/* Sums the queues whose names match pattern into queue: sizes, and the largest latency of those that are not
 * paused. queue is paused if all of them are. */
void database_view_sum(const struct database_view *view, const char *pattern, struct queue *queue);

/* Read a column of a row. A column that the row does not have is NULL. */
struct field database_row_text(const struct database_row *row, size_t column);
/* Returns false if the column is no number, or one above max. */
bool database_row_number(const struct database_row *row, size_t column, uint64_t max, uint64_t *ret);
/* Reads seconds since 1970 with a fraction, or a text as Rails writes it to SQLite: `2026-11-22
 * 10:45:09.123456`, in UTC. */
bool database_row_time(const struct database_row *row, size_t column, uint64_t *ret_usec);
