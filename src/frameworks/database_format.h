/* SPDX-License-Identifier: MIT */
/* How a framework keeps its data in a database, as frameworks/database_server.c needs it: statements for each
 * engine, and functions that decode their rows. Pure.
 *
 * Each statement bounds the number of its rows and the length of their texts, since any writer to the
 * database can make both large. No statement but those of a rescue locks a row. */
#pragma once

#include "settings/database_url.h"
#include <sys/types.h>

struct database_row;
struct database_view; /* frameworks/database_view.h */
struct traits;

/* The rows that DATABASE_PROCESSES and DATABASE_JOBS give at most. A batch with that many fails: without the
 * rows that are left out, a process would seem to be gone, or idle. */
#define DATABASE_LIST_MAX 65536
#define DATABASE_LIMIT    " LIMIT 65536"

/* The statements of a batch that reads. Each runs at most once in a batch. Times are what database_row_time()
 * reads. */
enum database_question {
        /* A row for each process; the framework's take_process reads them. $1: a JSON array of host names;
         * NULL: all hosts. */
        DATABASE_PROCESSES,
        /* A row for each running job, with the columns enum database_job_column. $1: a JSON array of what
         * follows `HOST:PID:` in identities. */
        DATABASE_JOBS,
        /* A row for each queue, with the columns enum database_queue_column. $1: a JSON array of names that
         * are read in any case. $2: how many others are read. */
        DATABASE_QUEUES,
        /* A single row: the number of jobs that wait for their time, and of failed jobs that are not retried.
         */
        DATABASE_COUNTS,
        /* A single row, with the columns enum database_fact_column. $1: a JSON array of host names. */
        DATABASE_DIAGNOSIS,
        /* A single row: how many of these jobs wait, or have another claim. $1: a JSON array of arrays of
         * claim and job. Only with take_entry. */
        DATABASE_RELEASED,
        _DATABASE_QUESTION_MAX,
};

enum database_job_column {
        DATABASE_JOB_HOST, /* the first three columns make the identity */
        DATABASE_JOB_PID,
        DATABASE_JOB_UNIT,
        DATABASE_JOB_THREAD,
        DATABASE_JOB_ID, /* as people know it */
        DATABASE_JOB_CLASS,
        DATABASE_JOB_QUEUE,
        DATABASE_JOB_STARTED, /* a time */
        /* For a rescue. GoodJob has none, and leaves these columns out. */
        DATABASE_JOB_CLAIM,
        DATABASE_JOB_NUMBER, /* also the id, if that is NULL */
        DATABASE_JOB_ARGUMENTS,
};

enum database_queue_column {
        DATABASE_QUEUE_NAME,
        DATABASE_QUEUE_SIZE,
        DATABASE_QUEUE_SINCE,  /* since when the oldest job waits; NULL: unknown */
        DATABASE_QUEUE_NOW,    /* the time by the database's clock */
        DATABASE_QUEUE_PAUSED, /* 1 or 0 */
};

/* See struct database_facts. */
enum database_fact_column {
        DATABASE_FACT_VERSION,
        DATABASE_FACT_READ_ONLY, /* 1 or 0 */
        DATABASE_FACT_FORKING,
        DATABASE_FACT_DISPATCHERS,
        DATABASE_FACT_SCHEDULERS,
        DATABASE_FACT_RECURRING,
        DATABASE_FACT_PAUSED,
        DATABASE_FACT_FAILED,
};

/* The parameters of a rescue. Its statements are one batch that writes; each gets all of them. */
enum database_rescue_parameter {
        DATABASE_RESCUE_HOST,
        DATABASE_RESCUE_PID,
        DATABASE_RESCUE_UNIT, /* the rest of the identity */
        DATABASE_RESCUE_THREAD,
        DATABASE_RESCUE_CLAIM,
        DATABASE_RESCUE_JOB,
        DATABASE_RESCUE_OLD, /* how the arguments of the job begin */
        DATABASE_RESCUE_NEW, /* how they are to begin */
        _DATABASE_RESCUE_PARAMETER_MAX,
};

#define DATABASE_RESCUE_STATEMENTS 4

/* The statements for one engine. */
struct database_texts {
        const char *begin; /* the first statement of each batch; NULL: none */
        const char *probe; /* see struct database_settings */
        const char *questions[_DATABASE_QUESTION_MAX];
        /* Up to the first NULL. The first one locks the claim, and gives a single row with 1 if process,
         * claim and job are as requested; otherwise none, or 0 if only the count of rescues differs. */
        const char *rescue[DATABASE_RESCUE_STATEMENTS];
        /* Gives the same row as the first statement, and locks nothing. Gets all parameters but the last. */
        const char *check;
};

/* The longest number of a database, with a NUL. */
#define DATABASE_NUMBER_MAX 24

/* The facts of a job that a rescue needs. */
struct database_rescue {
        char claim[DATABASE_NUMBER_MAX], job[DATABASE_NUMBER_MAX];
        unsigned times; /* how often the job was put back */
        char old_text[48], new_text[48];
};

struct database_format {
        const struct traits *traits;
        /* NULL: the framework does not work with the engine, and refusal is the reason. */
        const struct database_texts *engines[_DATABASE_ENGINE_MAX];
        const char *refusal;
        bool has_roles; /* see struct database_facts */
        /* Like that of struct framework. */
        bool (*identity_parse)(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);
        /* Takes a row of DATABASE_PROCESSES. A row that is no worker, or not understood, adds none. Returns 0
         * or -ENOMEM. */
        int (*take_process)(struct database_view *view, const struct database_row *row);
        /* A worker may report a pattern in place of the name of a queue. */
        bool (*is_pattern)(const char *name);
        bool (*matches)(const char *pattern, const char *queue);
        /* Decodes the entry of a job. Returns false if the job cannot be put back; *ret then has claim and
         * job if the entry has them. NULL: the framework has no rescue. */
        bool (*take_entry)(const struct field *entry, struct database_rescue *ret);
};

extern const struct database_format solid_queue_database_format, good_job_database_format;

/* Returns the format of the framework with this id (struct traits); NULL: it has none. */
const struct database_format *database_format_of(unsigned id);
