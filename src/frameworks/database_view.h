/* SPDX-License-Identifier: MIT */
/* What the rows of one batch say: workers with their heartbeats, the jobs they run, and the queues. Pure. */
#pragma once

#include "database/database.h"
#include "model/job.h"
#include "model/queues.h"
#include "model/worker.h"

/* A worker, found by its identity. */
struct database_process {
        char *identity; /* owned: HOST:PID:... */
        size_t host_len;
        pid_t pid;
        struct heartbeat heartbeat;
        char *queues; /* owned: a list as in struct heartbeat_info; NULL: none */
        size_t queues_len;
};

/* A worker has at most this many bytes of metadata or state; longer ones are read as damaged. */
#define DATABASE_DOCUMENT_MAX ((size_t)16 * 1024)

struct database_view {
        struct database_process *processes; /* owned; sorted by identity after database_view_sort() */
        size_t n_processes, allocated;
        struct queues *queues;    /* owned */
        struct job_list *jobs;    /* owned by the caller: one for each of identities, sorted alike */
        const char **identities;  /* whose jobs are asked for; sorted */
        size_t n_identities;
};

void database_view_clear(struct database_view *view);
void database_view_sort(struct database_view *view);
/* Returns the worker, after database_view_sort(); NULL: none. */
const struct database_process *database_view_find(const struct database_view *view, const char *identity);

/* Reads columns of a row. An absent column is NULL. */
struct field database_row_text(const struct database_row *row, size_t column);
bool database_row_number(const struct database_row *row, size_t column, uint64_t max, uint64_t *ret);
/* Microseconds since 1970, or a text of Rails in SQLite: `2026-11-22 10:45:09.123456`, in UTC. */
bool database_row_time(const struct database_row *row, size_t column, uint64_t *ret_usec);
