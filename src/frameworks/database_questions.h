/* SPDX-License-Identifier: MIT */
/* The statements of a batch that reads, gathered from the queries that it answers. */
#pragma once

#include "database/database.h"
#include "frameworks/database_format.h"
#include "wire/json.h"

struct ask;
struct database_view;

struct database_questions {
        struct database_view *view;             /* not owned; gets whose jobs are asked for */
        json_t *values[_DATABASE_QUESTION_MAX]; /* owned; the arrays that are the first parameters */
        bool wants[_DATABASE_QUESTION_MAX];     /* the batch needs the statement */
        size_t rows[_DATABASE_QUESTION_MAX];    /* taken so far */
        bool all_hosts;                         /* processes of all hosts are read */
        bool all_queues;                        /* other queues than those in values are read */
        enum database_question order[_DATABASE_QUESTION_MAX + 1]; /* by the number of the statement;
                                                                   * _DATABASE_QUESTION_MAX: it has no rows */
};

/* Returns 0 or -ENOMEM; the caller clears *ret in both cases. view->format is set. */
int database_questions_begin(struct database_view *view, struct database_questions *ret);
void database_questions_clear(struct database_questions *questions);

/* Returns true if another query of the batch asks for the same jobs, or both are QUERY_RELEASED. This one
 * belongs into another batch. */
bool database_questions_conflict(const struct database_questions *questions, const struct ask *ask);
/* Adds what the query needs. Returns 0 or -ENOMEM. */
int database_questions_add(struct database_questions *questions, const struct ask *ask);

/* Runs the statements. Returns what database_run() returns. */
int database_questions_run(struct database_questions *questions, struct database *database,
                           const struct database_texts *texts, const struct database_batch_ops *ops,
                           void *userdata);
/* Gives the view a row of a statement. Returns 0; -E2BIG for too many rows; or -ENOMEM. */
int database_questions_take(struct database_questions *questions, size_t statement,
                            const struct database_row *row);
