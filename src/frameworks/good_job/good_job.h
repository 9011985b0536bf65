/* SPDX-License-Identifier: MIT */
/* GoodJob 4: how sqmgr names its workers. A worker is `good_job start`: one process, a row of
 * good_job_processes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

extern const struct traits good_job_traits;
extern const struct framework good_job_framework;
/* The statements with which the tables are read: GoodJob works with PostgreSQL only. */
extern const struct database_texts good_job_postgresql;

/* The length of a UUID. */
#define GOOD_JOB_UUID_LENGTH 36

/* Splits an identity, `HOST:PID:UUID`, of which UUID is the row of the process: the length of the host at the
 * start of text, and the pid. Returns false if text is not an identity. */
bool good_job_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);
