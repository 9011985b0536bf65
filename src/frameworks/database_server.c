/* SPDX-License-Identifier: MIT */
/* A database as a framework uses it. The queries of one wakeup of sqmgr share one batch, in which each
 * statement that they need runs once; queries that arrive while it runs form the next batch. A query that
 * writes is a batch of its own. */
#include "database/database.h"
#include "frameworks/backends.h"
#include "frameworks/database_format.h"
#include "frameworks/database_questions.h"
#include "frameworks/database_view.h"
#include "frameworks/heartbeat_check.h"
#include "frameworks/table.h"
#include "servers/server.h"
#include "settings/settings.h"
#include <stdio.h>
#include <string.h>

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
        struct reader *reader = ((struct database_backend *)userdata)->reader;

        reader_decoding(reader, true);
        end_batch(userdata, result, error);
        reader_decoding(reader, false);
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
