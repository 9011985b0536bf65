/* SPDX-License-Identifier: MIT */
/* A database as a framework uses it. The queries of one wakeup of sqmgr share one batch, in which each
 * statement that they need runs once; queries that arrive while it runs form the next batch. A query that
 * writes is a batch of its own. */
#include "frameworks/backends.h"
#include "frameworks/database_format.h"
#include "frameworks/database_view.h"
#include "frameworks/heartbeat_check.h"
#include "frameworks/table.h"
#include "wire/json.h"
#include <stdio.h>

/* The statements of a batch that reads, gathered from the queries that it answers. */
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

/* Reading one queue more than is answered shows that queues are left out. */
#define OTHER_QUEUES "1001"
static_assert(QUEUES_READ_MAX == 1000, "OTHER_QUEUES is one more");

/* Returns 0 or -ENOMEM; the caller clears *ret in both cases. view->format is set. */
static int database_questions_begin(struct database_view *view, struct database_questions *ret)
{
        *ret = (struct database_questions){.view = view};
        FOREACH_ELEMENT(value, ret->values) {
                *value = json_array();
                if (!*value)
                        return -ENOMEM;
        }
        return 0;
}

static void database_questions_clear(struct database_questions *questions)
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

/* Adds what the query needs. Returns 0 or -ENOMEM. */
static int database_questions_add(struct database_questions *questions, const struct ask *ask)
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

/* Returns true if the query belongs into another batch: one of the batch asks for the same jobs, or both are
 * QUERY_RELEASED; or one is about queues or the database, whose statements may take too long, and then the
 * database refuses the whole batch. */
static bool database_questions_conflict(const struct database_questions *questions, const struct ask *ask)
{
        const struct query *query = ask_query(ask);
        const bool *wants = questions->wants;
        bool slow = query->kind == QUERY_QUEUES || query->kind == QUERY_DIAGNOSIS;

        if (slow ? wants[DATABASE_PROCESSES] || wants[DATABASE_JOBS] || wants[DATABASE_RELEASED]
                 : wants[DATABASE_QUEUES] || wants[DATABASE_COUNTS] || wants[DATABASE_DIAGNOSIS])
                return true;
        if (query->kind == QUERY_RELEASED)
                return wants[DATABASE_RELEASED];
        for (size_t i = 0; query->kind == QUERY_JOBS && i < query->n_texts; i++)
                if (database_view_find_work(questions->view, query_text(query, i)))
                        return true;
        return false;
}

/* Runs the statements. Returns what database_run() returns. */
static int database_questions_run(struct database_questions *questions, struct database *database,
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

/* Gives the view a row of a statement. Returns 0; -E2BIG for too many rows; or -ENOMEM. */
static int database_questions_take(struct database_questions *questions, size_t statement,
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

static bool answer_heartbeat(const struct database_view *view, const struct query *query, struct answer *ret)
{
        const struct database_process *process = database_view_find(view, query_text(query, 0));
        struct answer_heartbeat *answer = &ret->heartbeat;

        answer->found = process;
        if (!process)
                return true;
        answer->heartbeat = process->heartbeat;
        if (query->numbers[0] != 0) {
                answer->info = calloc(1, sizeof(*answer->info) + process->queues_length + 2);
                if (!answer->info)
                        return false;
                answer->info->concurrency = process->heartbeat.concurrency;
                if (process->queues_length > 0)
                        memcpy(answer->info->queues, process->queues, process->queues_length);
        }
        if (!heartbeat_check(framework_of(view->format->traits), &answer->heartbeat, answer->info)) {
                answer->found = false;
                free(TAKE_PTR(answer->info));
        }
        return true;
}

static bool answer_work_list(const struct database_view *view, const struct query *query, struct answer *ret)
{
        const struct database_process *process = database_view_find(view, query_text(query, 0));

        ret->work_list.known = process;
        ret->work_list.empty = process && process->heartbeat.busy == 0;
        return true;
}

static bool answer_scan(const struct database_view *view, const struct query *query, struct answer *ret)
{
        struct answer_scan *scan = &ret->scan;
        const char *host = query->n_texts > 1 ? query_text(query, 1) : NULL;

        scan->list = calloc(view->n_processes + 1, sizeof(*scan->list));
        if (!scan->list)
                return false;
        for (size_t i = 0; i < view->n_processes; i++) {
                const struct database_process *process = &view->processes[i];

                if ((i > 0 && strcmp(process[-1].identity, process->identity) == 0) ||
                    (host && (strlen(host) != process->host_len ||
                              memcmp(host, process->identity, process->host_len) != 0)))
                        continue;
                struct answer_identity *identity = &scan->list[scan->n];
                identity->identity = strdup(process->identity);
                if (!identity->identity)
                        return false;
                identity->host_len = process->host_len;
                identity->pid = process->pid;
                scan->n++;
        }
        return true;
}

static bool answer_jobs(const struct database_view *view, const struct query *query, struct answer *ret)
{
        struct answer_jobs *answer = &ret->jobs;

        answer->with_entries = query->numbers[0] != 0;
        answer->lists = calloc(query->n_texts + 1, sizeof(*answer->lists));
        if (!answer->lists)
                return false;
        answer->n = query->n_texts;
        for (size_t i = 0; i < query->n_texts; i++) {
                struct database_work *work = database_view_find_work(view, query_text(query, i));

                if (!work)
                        continue;
                answer->lists[i] = work->list;
                work->list = (struct job_list){0};
                job_list_end(&answer->lists[i], answer->with_entries);
        }
        return true;
}

static struct queue *add_queue(struct queues *queues, const char *name, const struct queue *from)
{
        struct queue *queue = queues_add(queues, name, strlen(name));

        if (queue && from) {
                char *own = queue->name;

                *queue = *from;
                queue->name = own;
        }
        return queue;
}

static bool answer_named(const struct database_view *view, const char *names, struct queues *queues)
{
        for (const char *name = names; *name != '\0'; name += strlen(name) + 1) {
                if (strlen(name) > QUEUE_NAME_MAX || queues->n == QUEUES_READ_MAX)
                        continue;
                bool sums = view->format->is_pattern(name);
                struct queue *queue =
                        add_queue(queues, name, sums ? NULL : database_view_find_queue(view, name));
                if (!queue)
                        return false;
                if (sums)
                        database_view_sum(view, name, queue);
        }
        return true;
}

static bool answer_queues(const struct database_view *view, const struct query *query, struct answer *ret)
{
        struct queues *queues = calloc(1, sizeof(*queues));

        ret->queues.queues = queues;
        if (!queues)
                return false;
        if (query->n_texts > 0)
                return answer_named(view, query_text(query, 0), queues);
        queues->schedule = view->queues.schedule;
        queues->dead = view->queues.dead;
        for (size_t i = 0; i < MIN(view->queues.n, (size_t)QUEUES_READ_MAX); i++)
                if (!add_queue(queues, view->queues.list[i].name, &view->queues.list[i]))
                        return false;
        queues->left_out = view->queues.n - queues->n + view->queues.left_out;
        return true;
}

static bool answer_diagnosis(const struct database_view *view, const struct query *query _unused_,
                             struct answer *ret)
{
        ret->diagnosis.database = view->facts;
        return true;
}

static bool answer_released(const struct database_view *view, const struct query *query _unused_,
                            struct answer *ret)
{
        ret->released.n = view->released;
        return true;
}

/* Each function returns false if memory is short. */
static bool (*const answers[_QUERY_KIND_MAX])(const struct database_view *view, const struct query *query,
                                              struct answer *ret) = {
        [QUERY_HEARTBEAT] = answer_heartbeat, [QUERY_WORK_LIST] = answer_work_list,
        [QUERY_SCAN] = answer_scan,           [QUERY_JOBS] = answer_jobs,
        [QUERY_QUEUES] = answer_queues,       [QUERY_DIAGNOSIS] = answer_diagnosis,
        [QUERY_RELEASED] = answer_released,
};

/* Returns true if queries of this kind are answered from a batch that reads. */
static bool database_answers(enum query_kind kind)
{
        return answers[kind];
}

/* Answers the query, and frees the ask. A list of jobs is handed out once. */
static void database_answer(const struct database_view *view, struct ask *ask)
{
        const struct query *query = ask_query(ask);
        struct answer answer = {.kind = query->kind};

        if (answers[query->kind](view, query, &answer)) {
                ask_done(ask, &answer);
                return;
        }
        answer_clear(&answer);
        ask_fail_errno(ask, -ENOMEM);
}

/* Lower than what asks: all queries of a poll have arrived before the batch begins. */
#define PRIORITY (SD_EVENT_PRIORITY_NORMAL + 5)

struct asks {
        struct ask **list; /* owned, with the asks */
        size_t n, allocated;
};

/* Puts a job of a dead process back into its queue, in one transaction. A repeated request changes nothing,
 * as the claim is gone. */
struct rescue {
        struct ask *ask; /* owned; NULL: no rescue is in progress */
        struct database_rescue job;
        bool writes;        /* the job is to be put back */
        bool found;         /* process, claim and job are as requested */
        bool count_matches; /* and so is the count of rescues */
        size_t check;       /* the number of the statement that shows it */
};

struct database_backend {
        struct reader *reader;
        const struct database_format *format;
        const struct database_texts *texts;
        struct database *database;
        sd_event_source *begin; /* starts a batch */

        struct asks waiting;
        bool running;
        unsigned entered; /* calls on the stack that end asks, and so may free the server */
        bool ending;      /* the backend is freed once they have returned */
        /* The members below belong to the batch that runs. */
        struct asks asks; /* answered from the view */
        struct database_view view;
        struct database_questions questions;
        struct rescue rescue;
};

static int asks_add(struct asks *asks, struct ask *ask)
{
        if (!ARRAY_RESERVE(asks->list, asks->n, asks->allocated))
                return -ENOMEM;
        asks->list[asks->n++] = ask;
        return 0;
}

static void asks_clear(struct asks *asks)
{
        free(asks->list);
        *asks = (struct asks){0};
}

/* Returns all asks, to be ended. Meanwhile others may be added. */
static struct asks asks_take(struct asks *asks)
{
        struct asks all = *asks;

        *asks = (struct asks){0};
        return all;
}

static void asks_fail(struct asks *asks, enum answer_status status, const struct error_report *error)
{
        struct asks all = asks_take(asks);

        for (size_t i = 0; i < all.n; i++)
                ask_fail_as(all.list[i], status, error);
        asks_clear(&all);
}

static void backend_enter(struct database_backend *backend)
{
        backend->entered++;
}

static void backend_leave(struct database_backend *backend)
{
        if (--backend->entered > 0 || !backend->ending)
                return;
        asks_clear(&backend->waiting);
        asks_clear(&backend->asks);
        sd_event_source_disable_unref(backend->begin);
        free(backend);
}

static void fail_waiting(struct database_backend *backend, const char *why)
{
        struct error_report error;

        error_report_set(&error, "%s", why);
        asks_fail(&backend->waiting, ANSWER_LOST, &error);
}

/* Has the next batch begin, if queries wait and no batch runs. */
static void schedule(struct database_backend *backend)
{
        if (backend->waiting.n > 0 && !backend->running && !backend->ending &&
            sd_event_source_set_enabled(backend->begin, SD_EVENT_ONESHOT) < 0)
                fail_waiting(backend, "out of memory");
}

/* Answers the query after DATABASE_DONE, and frees the ask. */
static void rescue_answer(struct rescue *rescue)
{
        struct ask *ask = TAKE_PTR(rescue->ask);
        struct answer answer = {0};

        if (!rescue->found)
                answer.requeue.outcome = RESCUE_LEFT;
        else if (rescue->writes && rescue->count_matches)
                answer.requeue =
                        (struct answer_requeue){.outcome = RESCUE_REQUEUED, .times = rescue->job.times + 1};
        else
                answer.requeue.outcome =
                        ask_query(ask)->numbers[1] != 0 && !rescue->writes ? RESCUE_PARKED : RESCUE_LOST;
        ask_done(ask, &answer);
}

/* Ends the batch with its queries. error: NULL if the result is DATABASE_DONE. */
static void end_batch(struct database_backend *backend, enum database_result result,
                      const struct error_report *error)
{
        enum answer_status status = result == DATABASE_REFUSED ? ANSWER_REFUSED : ANSWER_LOST;

        backend_enter(backend);
        backend->running = false;
        if (result == DATABASE_DONE) {
                struct asks asks = asks_take(&backend->asks);

                database_view_sort(&backend->view);
                for (size_t i = 0; i < asks.n; i++)
                        database_answer(&backend->view, asks.list[i]);
                asks_clear(&asks);
                if (backend->rescue.ask)
                        rescue_answer(&backend->rescue);
        } else {
                asks_fail(&backend->asks, status, error);
                if (backend->rescue.ask)
                        ask_fail_as(TAKE_PTR(backend->rescue.ask), status, error);
        }
        database_view_clear(&backend->view);
        database_questions_clear(&backend->questions);
        schedule(backend);
        backend_leave(backend);
}

/* Ends a batch that could not be sent. */
static void end_unsent(struct database_backend *backend, int error)
{
        struct error_report report;

        error_report_set(&report, "%s",
                         error == -ENOMEM   ? "out of memory"
                         : error == -EINVAL ? "the entry is not a job"
                                            : "connection lost");
        end_batch(backend, error == -EINVAL ? DATABASE_REFUSED : DATABASE_LOST, &report);
}

static void on_done(enum database_result result, const struct error_report *error, void *userdata)
{
        struct database_backend *backend = userdata;
        struct reader *reader = backend->reader;

        /* A database that shows no processes, as while a migration locks a table, is away: nothing that it
         * does not show is missing. */
        backend_enter(backend);
        reader_decoding(reader, true);
        if (result == DATABASE_REFUSED && backend->questions.wants[DATABASE_PROCESSES]) {
                database_drop(backend->database, error);
                result = DATABASE_LOST;
        }
        end_batch(backend, result, error);
        reader_decoding(reader, false);
        backend_leave(backend);
}

static int on_row(size_t statement, const struct database_row *row, void *userdata)
{
        struct database_backend *backend = userdata;

        reader_decoding(backend->reader, true);
        int r = database_questions_take(&backend->questions, statement, row);
        reader_decoding(backend->reader, false);
        return r;
}

static int on_rescue_row(size_t statement, const struct database_row *row, void *userdata)
{
        struct rescue *rescue = &((struct database_backend *)userdata)->rescue;
        uint64_t same;

        if (statement != rescue->check)
                return 0;
        rescue->found = true;
        rescue->count_matches = database_row_number(row, 0, 1, &same) && same == 1;
        return 0;
}

/* Takes the queries that a batch can answer; others keep waiting. Returns 0 or -ENOMEM. */
static int take_asks(struct database_backend *backend)
{
        struct asks all = asks_take(&backend->waiting);
        int r = 0;

        for (size_t i = 0; i < all.n; i++) {
                struct ask *ask = all.list[i];
                bool waits = !database_answers(ask_query(ask)->kind) ||
                             database_questions_conflict(&backend->questions, ask);
                int error = asks_add(waits ? &backend->waiting : &backend->asks, ask);

                if (error < 0)
                        ask_fail_errno(ask, error);
                else if (!waits && r >= 0)
                        r = database_questions_add(&backend->questions, ask);
        }
        asks_clear(&all);
        return r;
}

static int begin_reading(struct database_backend *backend)
{
        static const struct database_batch_ops ops = {.row = on_row, .done = on_done};
        int r = database_questions_begin(&backend->view, &backend->questions);

        if (r >= 0)
                r = take_asks(backend);
        else
                fail_waiting(backend, "out of memory");
        if (r >= 0 && backend->ending)
                r = -ENOTCONN;
        return r < 0 ? r
                     : database_questions_run(&backend->questions, backend->database, backend->texts, &ops,
                                              backend);
}

enum { TEXT_IDENTITY, TEXT_THREAD, TEXT_ENTRY };

/* Adds a statement with the first parameters. */
static void add_statement(struct database_statement *statements, size_t *n, const char *sql,
                          const char *const *parameters, size_t n_parameters)
{
        statements[*n] = (struct database_statement){.sql = sql, .parameters = parameters, .n = n_parameters};
        ++*n;
}

/* Returns 0: ops follow; a negative number of database_run(); or -EINVAL: the query is not understood. The
 * ask is kept in all cases. */
static int rescue_run(struct database_backend *backend, struct ask *ask, const struct database_batch_ops *ops)
{
        struct rescue *rescue = &backend->rescue;
        const struct database_format *format = backend->format;
        const struct database_texts *texts = backend->texts;
        const struct query *query = ask_query(ask);
        const char *identity = query_text(query, TEXT_IDENTITY);
        struct database_statement statements[DATABASE_RESCUE_STATEMENTS + 1];
        char host[ANSWER_HOST_MAX + 1], pid_text[DATABASE_NUMBER_MAX];
        size_t host_len, n = 0;
        pid_t pid;

        rescue->ask = ask;
        rescue->found = rescue->count_matches = false;
        if (query->n_texts != 4 || !format->identity_parse(identity, strlen(identity), &host_len, &pid) ||
            host_len >= sizeof(host) || !format->take_entry(&query->texts[TEXT_ENTRY], &rescue->job))
                return -EINVAL;
        rescue->writes = query->numbers[1] != 0 && rescue->job.times < query->numbers[2];
        memcpy(host, identity, host_len);
        host[host_len] = '\0';
        snprintf(pid_text, sizeof(pid_text), "%d", pid);
        const char *const parameters[] = {
                [DATABASE_RESCUE_HOST] = host,
                [DATABASE_RESCUE_PID] = pid_text,
                [DATABASE_RESCUE_UNIT] = strchr(identity + host_len + 1, ':') + 1,
                [DATABASE_RESCUE_THREAD] = query_text(query, TEXT_THREAD),
                [DATABASE_RESCUE_CLAIM] = rescue->job.claim,
                [DATABASE_RESCUE_JOB] = rescue->job.job,
                [DATABASE_RESCUE_OLD] = rescue->job.old_text,
                [DATABASE_RESCUE_NEW] = rescue->job.new_text,
        };
        static_assert(ELEMENTSOF(parameters) == _DATABASE_RESCUE_PARAMETER_MAX, "a text for each");
        if (texts->begin)
                statements[n++] = (struct database_statement){.sql = texts->begin};
        rescue->check = n;
        if (!rescue->writes)
                add_statement(statements, &n, texts->check, parameters, DATABASE_RESCUE_NEW);
        for (size_t i = 0; rescue->writes && i < DATABASE_RESCUE_STATEMENTS && texts->rescue[i]; i++)
                add_statement(statements, &n, texts->rescue[i], parameters, _DATABASE_RESCUE_PARAMETER_MAX);
        return database_run(backend->database, statements, n, rescue->writes, ops, backend);
}

static int begin_rescue(struct database_backend *backend)
{
        static const struct database_batch_ops ops = {.row = on_rescue_row, .done = on_done};
        struct asks *waiting = &backend->waiting;
        struct ask *ask = waiting->list[0];

        memmove(waiting->list, waiting->list + 1, --waiting->n * sizeof(struct ask *));
        return rescue_run(backend, ask, &ops);
}

static int on_begin(sd_event_source *source _unused_, void *userdata)
{
        struct database_backend *backend = userdata;

        if (backend->waiting.n == 0 || backend->running)
                return 0;
        backend_enter(backend);
        backend->running = true;
        int r = database_answers(backend->waiting.list[0]->query.kind) ? begin_reading(backend)
                                                                       : begin_rescue(backend);
        if (r < 0)
                end_unsent(backend, r);
        backend_leave(backend);
        return 0;
}

static void on_state(struct database *database, enum database_state state, const struct error_report *error,
                     void *userdata)
{
        static const enum reader_state states[] = {
                [DATABASE_CONNECTING] = READER_STATE_CONNECTING,
                [DATABASE_CONNECTED] = READER_STATE_CONNECTED,
                [DATABASE_DOWN] = READER_STATE_DOWN,
        };
        const struct database_backend *backend = userdata;
        struct reader_report report = {.state = states[state],
                                       .connections = database_connection_count(database)};

        static_assert(ELEMENTSOF(states) == _DATABASE_STATE_MAX, "a state for each");
        if (error)
                report.error = *error;
        reader_report_state(backend->reader, &report);
}

static void backend_end(void *userdata)
{
        struct database_backend *backend = userdata;

        backend_enter(backend);
        backend->ending = true;
        backend->database = database_free(backend->database);
        fail_waiting(backend, "connection lost");
        backend_leave(backend);
}

static char *backend_url_text(const struct reader_options *options)
{
        _cleanup_database_url_ struct database_url url = {0};
        int r = database_url_parse(options->url ?: "", &url, NULL);

        if (r >= 0)
                return TAKE_PTR(url.text);
        return r == -ENOMEM ? NULL : strdup("(no URL)");
}

static int begin(struct database_backend *backend, const struct reader_options *options)
{
        static const struct database_ops ops = {.state = on_state};
        _cleanup_database_url_ struct database_url url = {0};
        sd_event *event = reader_event(backend->reader);

        backend->format = database_format_of(options->framework);
        if (!backend->format || !options->url)
                return -EINVAL;
        int r = database_url_parse(options->url, &url, NULL);
        if (r < 0)
                return r;
        backend->view.format = backend->format;
        backend->texts = backend->format->engines[url.engine];
        if (!backend->texts)
                return -ENOTSUP;
        const struct database_settings settings = {
                .engine = url.engine,
                .starter = options->starter,
                .url = options->url,
                .timeout = options->settings->timeout ?: SERVER_TIMEOUT_USEC,
                .probe = backend->texts->probe,
        };
        r = sd_event_add_defer(event, &backend->begin, on_begin, backend);
        if (r >= 0)
                r = sd_event_source_set_enabled(backend->begin, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_source_set_priority(backend->begin, PRIORITY);
        return r < 0 ? r : database_new(event, &settings, &ops, backend, &backend->database);
}

static int backend_begin(struct reader *reader, const struct reader_options *options,
                         struct error_report *error, void **ret)
{
        struct database_backend *backend = calloc(1, sizeof(*backend));

        if (!backend)
                return -ENOMEM;
        backend->reader = reader;
        int r = begin(backend, options);
        if (r >= 0) {
                *ret = backend;
                return 0;
        }
        backend_end(backend);
        if (r != -ENOMEM)
                error_report_set(error, "cannot connect: %s", strerror(-r));
        return r;
}

static void backend_ask(void *userdata, struct ask *ask)
{
        struct database_backend *backend = userdata;
        enum query_kind kind = ask_query(ask)->kind;
        bool of_rescue = kind == QUERY_REQUEUE || kind == QUERY_RELEASED;

        if (kind == QUERY_SCANNERS || kind == QUERY_SCAN_LEAVE) {
                /* A scan is a part of the batch, and all hosts may scan at once. */
                struct answer answer = {0};

                if (kind == QUERY_SCANNERS)
                        answer.scanners.blind = true;
                ask_done(ask, &answer);
        } else if (of_rescue ? !backend->format->take_entry : !database_answers(kind)) {
                ask_fail_unknown(ask);
        } else if (database_state(backend->database) != DATABASE_CONNECTED) {
                ask_fail_errno(ask, -ENOTCONN);
        } else if (asks_add(&backend->waiting, ask) < 0) {
                ask_fail_errno(ask, -ENOMEM);
        } else {
                schedule(backend);
        }
}

static usec_t backend_rtt_usec(const void *userdata)
{
        const struct database_backend *backend = userdata;

        return database_rtt_usec(backend->database);
}

const struct reader_backend database_backend = {
        .url_text = backend_url_text,
        .begin = backend_begin,
        .end = backend_end,
        .ask = backend_ask,
        .rtt_usec = backend_rtt_usec,
};
