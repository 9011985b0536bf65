/* SPDX-License-Identifier: MIT */
/* How a framework keeps its data in a database, as the reader process needs it: statements for each engine, and
 * functions that decode their rows. Pure.
 *
 * Each statement bounds the number of its rows and the length of their texts, since any writer to the database
 * can make both large. No statement but those of a rescue locks a row. */
#pragma once

#include "frameworks/database_view.h"
#include "settings/database_url.h"

struct traits;
struct job;
struct database_rescue;

/* The statements of a batch. Each runs at most once in a batch, in this order. Times are microseconds since 1970
 * (PostgreSQL), or a text as Rails writes it to SQLite: database_row_time() reads both. */
enum database_question {
        /* A row for each process row, or for each worker: see take_process. $1: a JSON array of host names;
         * NULL: all hosts. */
        DATABASE_PROCESSES,
        /* A row for each running job: host, pid, the rest of the identity, thread, job id, class, queue, when
         * it was begun, what the entry of the job is made of (NULL: nothing). $1: a JSON array of what follows
         * `HOST:PID:` in the identities. */
        DATABASE_JOBS,
        /* A row for each queue: name, number of waiting jobs, since when the oldest one waits (NULL: unknown),
         * the time of the database, whether the queue is paused (1 or 0). $1: a JSON array of names that are
         * read in any case; other queues follow until the bound. Sorted by name. */
        DATABASE_QUEUES,
        /* One row: jobs that wait for their time, jobs that have failed for good. */
        DATABASE_COUNTS,
        /* One row: the version of the server, whether it refuses writes (1 or 0), the number of processes
         * whose mode the framework's workers must not have (for Solid Queue: forking supervisors). */
        DATABASE_DIAGNOSIS,
        _DATABASE_QUESTION_MAX,
};

/* The statements of a rescue, one batch that writes, in this order. The parameters are the same for all:
 * enum database_rescue_parameter. */
enum database_rescue_step {
        DATABASE_RESCUE_CHECK, /* a row if process, claim and job are as requested; 1: the job is as it was */
        DATABASE_RESCUE_READY,
        DATABASE_RESCUE_COUNT,
        DATABASE_RESCUE_RELEASE,
        _DATABASE_RESCUE_STEP_MAX,
};
enum database_rescue_parameter {
        DATABASE_RESCUE_HOST,
        DATABASE_RESCUE_PID,
        DATABASE_RESCUE_UNIT,   /* the rest of the identity */
        DATABASE_RESCUE_THREAD, /* of the job */
        DATABASE_RESCUE_JOB,    /* its id */
        DATABASE_RESCUE_OLD,    /* how its arguments begin now */
        DATABASE_RESCUE_NEW,    /* how they begin then */
        _DATABASE_RESCUE_PARAMETER_MAX,
};

/* What a framework asks one engine. */
struct database_texts {
        const char *probe; /* see struct database_settings */
        const char *questions[_DATABASE_QUESTION_MAX];
        const char *rescue[_DATABASE_RESCUE_STEP_MAX];
        const char *rescue_report; /* as DATABASE_RESCUE_CHECK, and locks nothing: nothing is put back */
};

struct database_format {
        const struct traits *traits;
        /* NULL: the framework does not work with the engine; refusal says so. */
        const struct database_texts *engines[_DATABASE_ENGINE_MAX];
        const char *refusal;
        /* Like that of struct framework. */
        bool (*identity_parse)(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);
        /* Takes a row of DATABASE_PROCESSES. A row that is no worker, or not understood, adds none. Returns 0
         * or -ENOMEM. */
        int (*take_process)(struct database_view *view, const struct database_row *row);
        /* Does a worker that reports this name of queues serve the queue? Names without a special meaning match
         * themselves. */
        bool (*queue_matches)(const char *pattern, const struct field *queue);
        bool (*queue_is_pattern)(const char *name);
        /* Decodes the beginning of the entry of a job: how often it was put back, and the parameters OLD and NEW
         * for the next time. Returns false if the job cannot be put back. NULL: the framework has no rescue. */
        bool (*take_rescues)(const struct field *arguments, struct database_rescue *ret);
};

/* How the arguments of a job begin before and after a rescue. */
struct database_rescue {
        unsigned times; /* how often the job was put back so far */
        char old_text[48], new_text[48];
};

extern const struct database_format solid_queue_database_format, good_job_database_format;

/* Returns the format of the framework with this id (struct traits); NULL: it has none. */
const struct database_format *database_format_of(unsigned id);
