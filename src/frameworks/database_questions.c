/* SPDX-License-Identifier: MIT */
/* The statements of a batch that reads; see the header. */
#include "frameworks/database_questions.h"
#include "frameworks/database_view.h"
#include "servers/server.h"
#include <string.h>

/* Reading one queue more than is answered shows that queues are left out. */
#define OTHER_QUEUES "1001"
static_assert(QUEUES_READ_MAX == 1000, "OTHER_QUEUES is one more");

int database_questions_begin(struct database_view *view, struct database_questions *ret)
{
        *ret = (struct database_questions){.view = view};
        FOREACH_ELEMENT(value, ret->values) {
                *value = json_array();
                if (!*value)
                        return -ENOMEM;
        }
        return 0;
}

void database_questions_clear(struct database_questions *questions)
{
        FOREACH_ELEMENT(value, questions->values)
                json_decref(*value);
        *questions = (struct database_questions){0};
}

/* Adds a text to the parameter of a question, unless the last one is the same. A text that is no UTF-8 cannot
 * be in the database, and is left out. */
static int add_text(struct database_questions *questions, enum database_question question, const char *text,
                    size_t length)
{
        json_t *array = questions->values[question];
        size_t n = json_array_size(array);

        errno = 0;
        json_t *value = json_stringn(text, length);
        if (!value)
                return errno == ENOMEM ? -ENOMEM : 0;
        if (n > 0 && json_equal(json_array_get(array, n - 1), value)) {
                json_decref(value);
                return 0;
        }
        return json_array_append_new(array, value) < 0 ? -ENOMEM : 0;
}

static int add_identity(struct database_questions *questions, const char *identity)
{
        size_t host_len;
        pid_t pid;

        if (!questions->view->format->identity_parse(identity, strlen(identity), &host_len, &pid))
                return 0;
        return add_text(questions, DATABASE_PROCESSES, identity, host_len);
}

static int add_scan(struct database_questions *questions, const struct query *query)
{
        const char *host = query_text(query, 1);

        if (query->n_texts > 1)
                return add_text(questions, DATABASE_PROCESSES, host, strlen(host));
        questions->all_hosts = true;
        return 0;
}

static int add_work(struct database_questions *questions, const char *identity)
{
        size_t host_len;
        pid_t pid;

        if (!questions->view->format->identity_parse(identity, strlen(identity), &host_len, &pid))
                return 0;
        int r = database_view_ask_work(questions->view, identity);
        if (r < 0)
                return r == -EEXIST ? 0 : r;
        const char *unit = strchr(identity + host_len + 1, ':') + 1;
        return add_text(questions, DATABASE_JOBS, unit, strlen(unit));
}

static int add_works(struct database_questions *questions, const struct query *query)
{
        int r = 0;

        for (size_t i = 0; i < query->n_texts && r >= 0; i++)
                r = add_work(questions, query_text(query, i));
        return r;
}

static int add_queues(struct database_questions *questions, const struct query *query)
{
        int r = 0;

        if (query->n_texts == 0) {
                questions->all_queues = questions->wants[DATABASE_COUNTS] = true;
                return 0;
        }
        /* The text is followed by a NUL: the list ends with two. */
        for (const char *name = query_text(query, 0); *name != '\0' && r >= 0; name += strlen(name) + 1)
                if (questions->view->format->is_pattern(name))
                        questions->all_queues = true;
                else if (json_array_size(questions->values[DATABASE_QUEUES]) < QUEUES_READ_MAX)
                        r = add_text(questions, DATABASE_QUEUES, name, strlen(name));
        return r;
}

static int add_released(struct database_questions *questions, const struct query *query)
{
        json_t *jobs = questions->values[DATABASE_RELEASED];

        for (size_t i = 0; i < query->n_texts && i < QUERY_RELEASED_MAX; i++) {
                struct database_rescue job;

                (void)questions->view->format->take_entry(&query->texts[i], &job);
                if (job.job[0] != '\0' &&
                    json_array_append_new(jobs, json_pack("[s, s]", job.claim, job.job)) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int database_questions_add(struct database_questions *questions, const struct ask *ask)
{
        const struct query *query = ask_query(ask);
        const char *first = query_text(query, 0);

        switch (query->kind) {
        case QUERY_HEARTBEAT:
        case QUERY_WORK_LIST:
                questions->wants[DATABASE_PROCESSES] = true;
                return add_identity(questions, first);
        case QUERY_SCAN:
                questions->wants[DATABASE_PROCESSES] = true;
                return add_scan(questions, query);
        case QUERY_JOBS:
                questions->wants[DATABASE_JOBS] = true;
                return add_works(questions, query);
        case QUERY_QUEUES:
                questions->wants[DATABASE_QUEUES] = true;
                return add_queues(questions, query);
        case QUERY_RELEASED:
                questions->wants[DATABASE_RELEASED] = true;
                return add_released(questions, query);
        default:
                questions->wants[DATABASE_DIAGNOSIS] = true;
                return add_text(questions, DATABASE_DIAGNOSIS, first, strlen(first));
        }
}

bool database_questions_conflict(const struct database_questions *questions, const struct ask *ask)
{
        const struct query *query = ask_query(ask);

        if (query->kind == QUERY_RELEASED)
                return questions->wants[DATABASE_RELEASED];
        for (size_t i = 0; query->kind == QUERY_JOBS && i < query->n_texts; i++)
                if (database_view_find_work(questions->view, query_text(query, i)))
                        return true;
        return false;
}

int database_questions_run(struct database_questions *questions, struct database *database,
                           const struct database_texts *texts, const struct database_batch_ops *ops,
                           void *userdata)
{
        static const size_t n_parameters[] = {
                [DATABASE_PROCESSES] = 1, [DATABASE_JOBS] = 1,      [DATABASE_QUEUES] = 2,
                [DATABASE_COUNTS] = 0,    [DATABASE_DIAGNOSIS] = 1, [DATABASE_RELEASED] = 1,
        };
        struct database_statement statements[_DATABASE_QUESTION_MAX + 1];
        const char *parameters[_DATABASE_QUESTION_MAX][2];
        char *arrays[_DATABASE_QUESTION_MAX] = {NULL};
        size_t n = 0;
        int r = 0;

        static_assert(ELEMENTSOF(n_parameters) == _DATABASE_QUESTION_MAX, "an entry for each");
        if (texts->begin) {
                questions->order[n] = _DATABASE_QUESTION_MAX;
                statements[n++] = (struct database_statement){.sql = texts->begin};
        }
        for (enum database_question i = 0; i < _DATABASE_QUESTION_MAX; i++) {
                bool all = i == DATABASE_PROCESSES && questions->all_hosts;

                if (!questions->wants[i])
                        continue;
                arrays[i] = all ? NULL : json_text(questions->values[i], JSON_COMPACT);
                if (!all && !arrays[i])
                        r = -ENOMEM;
                parameters[i][0] = arrays[i];
                parameters[i][1] = questions->all_queues ? OTHER_QUEUES : "0";
                questions->order[n] = i;
                statements[n] = (struct database_statement){
                        .sql = texts->questions[i], .parameters = parameters[i], .n = n_parameters[i]};
                n++;
        }
        if (r >= 0)
                r = database_run(database, statements, n, false, ops, userdata);
        FOREACH_ELEMENT(array, arrays)
                free(*array);
        return r;
}

int database_questions_take(struct database_questions *questions, size_t statement,
                            const struct database_row *row)
{
        enum database_question question = questions->order[statement];
        struct database_view *view = questions->view;

        if (question < _DATABASE_QUESTION_MAX && ++questions->rows[question] >= DATABASE_LIST_MAX)
                return -E2BIG;
        switch (question) {
        case DATABASE_PROCESSES:
                return view->format->take_process(view, row);
        case DATABASE_JOBS:
                return database_view_take_job(view, row);
        case DATABASE_QUEUES:
                return database_view_take_queue(view, row);
        case DATABASE_COUNTS:
                return database_view_take_counts(view, row);
        case DATABASE_RELEASED:
                return database_view_take_released(view, row);
        case DATABASE_DIAGNOSIS:
                return database_view_take_facts(view, row);
        default:
                return 0;
        }
}
