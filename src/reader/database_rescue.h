/* SPDX-License-Identifier: MIT */
/* Puts a job of a dead process back into its queue, in one transaction of a database. */
#pragma once

#include "database/database.h"
#include "frameworks/database_format.h"

struct ask;

/* A rescue in progress. */
struct database_rescue_work {
        /* Set by the caller, once: */
        const struct database_format *format;
        const struct database_texts *texts;
        struct database *database;

        struct ask *ask; /* owned; NULL: no rescue is in progress */
        struct database_rescue job;
        bool writes;        /* the job is to be put back */
        bool found;         /* process, claim and job are as requested */
        bool count_matches; /* and so is the count of rescues */
        size_t check;       /* the number of the statement that shows it */
};

/* Runs the batch for a QUERY_REQUEUE. Returns 0: ops follow; a negative number of database_run(); or -EINVAL:
 * the query is not understood. The ask is kept in *work in all cases. */
int database_rescue_run(struct database_rescue_work *work, struct ask *ask,
                        const struct database_batch_ops *ops, void *userdata);
void database_rescue_take(struct database_rescue_work *work, size_t statement,
                          const struct database_row *row);
/* Answers the query after DATABASE_DONE, and frees the ask. */
void database_rescue_answer(struct database_rescue_work *work);
