/* SPDX-License-Identifier: MIT */
/* The backend of a reader of a database. The queries of one wakeup of sqmgr share one batch, in which each
 * statement that they need runs once; queries that arrive while it runs form the next batch. A query that
 * writes is a batch of its own. */
#include "database/database.h"
#include "frameworks/database_format.h"
#include "frameworks/database_view.h"
#include "queries/configuration.h"
#include "reader/ask.h"
#include "reader/backend.h"
#include "reader/database_answers.h"
#include "reader/database_questions.h"
#include "reader/database_rescue.h"
#include "reader/server.h"
#include <string.h>

/* Lower than the socket of queries: all queries of a poll have arrived before the batch begins. */
#define PRIORITY (SD_EVENT_PRIORITY_NORMAL + 5)

struct asks {
        struct ask **list; /* owned, with the asks */
        size_t n, allocated;
};

struct database_backend {
        struct reader_server *server;
        const struct database_format *format;
        const struct database_texts *texts;
        struct database *database;
        sd_event_source *begin; /* starts a batch */

        struct asks waiting;
        bool running;
        bool ending; /* the backend is being freed */
        /* The members below belong to the batch that runs. */
        struct asks asks; /* answered from the view */
        struct database_view view;
        struct database_questions questions;
        struct database_rescue_work rescue;
};

static int asks_add(struct asks *asks, struct ask *ask)
{
        if (!ARRAY_RESERVE(asks->list, asks->n, asks->allocated))
                return -ENOMEM;
        asks->list[asks->n++] = ask;
        return 0;
}

static void asks_fail(struct asks *asks, enum answer_status status, const struct error_report *error)
{
        for (size_t i = 0; i < asks->n; i++)
                ask_fail_as(asks->list[i], status, error);
        asks->n = 0;
}

static void asks_clear(struct asks *asks)
{
        free(asks->list);
        *asks = (struct asks){0};
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

/* Ends the batch with its queries. error: NULL if the result is DATABASE_DONE. */
static void end_batch(struct database_backend *backend, enum database_result result,
                      const struct error_report *error)
{
        enum answer_status status = result == DATABASE_REFUSED ? ANSWER_REFUSED : ANSWER_LOST;

        backend->running = false;
        if (result == DATABASE_DONE) {
                database_view_sort(&backend->view);
                for (size_t i = 0; i < backend->asks.n; i++)
                        database_answer(&backend->view, backend->asks.list[i]);
                backend->asks.n = 0;
                if (backend->rescue.ask)
                        database_rescue_answer(&backend->rescue);
        } else {
                asks_fail(&backend->asks, status, error);
                if (backend->rescue.ask)
                        ask_fail_as(TAKE_PTR(backend->rescue.ask), status, error);
        }
        database_view_clear(&backend->view);
        database_questions_clear(&backend->questions);
        schedule(backend);
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
        end_batch(userdata, result, error);
}

static int on_row(size_t statement, const struct database_row *row, void *userdata)
{
        struct database_backend *backend = userdata;

        return database_questions_take(&backend->questions, statement, row);
}

static int on_rescue_row(size_t statement, const struct database_row *row, void *userdata)
{
        struct database_backend *backend = userdata;

        database_rescue_take(&backend->rescue, statement, row);
        return 0;
}

/* Takes the queries that a batch can answer; others keep waiting. Returns 0 or -ENOMEM. */
static int take_asks(struct database_backend *backend)
{
        struct asks all = backend->waiting;
        int r = 0;

        backend->waiting = (struct asks){0};
        for (size_t i = 0; i < all.n; i++) {
                struct ask *ask = all.list[i];
                bool waits = !database_answers(ask->answer.kind) ||
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
        return r < 0 ? r
                     : database_questions_run(&backend->questions, backend->database, backend->texts, &ops,
                                              backend);
}

static int begin_rescue(struct database_backend *backend)
{
        static const struct database_batch_ops ops = {.row = on_rescue_row, .done = on_done};
        struct asks *waiting = &backend->waiting;
        struct ask *ask = waiting->list[0];

        memmove(waiting->list, waiting->list + 1, --waiting->n * sizeof(struct ask *));
        return database_rescue_run(&backend->rescue, ask, &ops, backend);
}

static int on_begin(sd_event_source *source _unused_, void *userdata)
{
        struct database_backend *backend = userdata;

        if (backend->waiting.n == 0 || backend->running)
                return 0;
        backend->running = true;
        int r = database_answers(backend->waiting.list[0]->answer.kind) ? begin_reading(backend)
                                                                        : begin_rescue(backend);
        if (r < 0)
                end_unsent(backend, r);
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
        reader_server_report(backend->server, &report);
}

static void backend_end(void *userdata)
{
        struct database_backend *backend = userdata;

        backend->ending = true;
        backend->database = database_free(backend->database);
        fail_waiting(backend, "connection lost");
        asks_clear(&backend->waiting);
        asks_clear(&backend->asks);
        sd_event_source_disable_unref(backend->begin);
        free(backend);
}

/* Judges the configuration, and finds the statements. */
static int find_texts(const struct reader_configuration *configuration, struct database_backend *backend)
{
        _cleanup_database_url_ struct database_url url = {0};

        backend->format = database_format_of(configuration->framework);
        if (!backend->format || !configuration->url)
                return -EINVAL;
        int r = database_url_parse(configuration->url, &url, NULL);
        if (r < 0)
                return r;
        backend->view.format = backend->format;
        backend->texts = backend->format->engines[url.engine];
        return url.engine == database_engine && backend->texts ? 0 : -ENOTSUP;
}

static int begin(struct database_backend *backend, const struct reader_configuration *configuration)
{
        static const struct database_ops ops = {.state = on_state};
        sd_event *event = reader_server_event(backend->server);
        const struct database_settings settings = {
                .url = configuration->url,
                .connect_timeout = configuration->connect_timeout,
                .command_timeout = configuration->command_timeout,
                .probe = backend->texts->probe,
        };

        int r = sd_event_add_defer(event, &backend->begin, on_begin, backend);
        if (r >= 0)
                r = sd_event_source_set_enabled(backend->begin, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_source_set_priority(backend->begin, PRIORITY);
        if (r >= 0)
                r = database_new(event, &settings, &ops, backend, &backend->database);
        backend->rescue = (struct database_rescue_work){
                .format = backend->format, .texts = backend->texts, .database = backend->database};
        return r;
}

static int backend_begin(struct reader_server *server, const struct reader_configuration *configuration,
                         struct settings_tls_refusal *refusal _unused_, void **ret)
{
        struct database_backend *backend = calloc(1, sizeof(*backend));

        if (!backend)
                return -ENOMEM;
        backend->server = server;
        int r = find_texts(configuration, backend);
        if (r >= 0 && !configuration->check)
                r = begin(backend, configuration);
        if (r < 0 || configuration->check)
                backend_end(backend);
        else
                *ret = backend;
        return r;
}

static void backend_ask(void *userdata, struct ask *ask)
{
        struct database_backend *backend = userdata;
        enum query_kind kind = ask->answer.kind;
        bool of_rescue = kind == QUERY_REQUEUE || kind == QUERY_RELEASED;

        if (kind == QUERY_SCANNERS || kind == QUERY_SCAN_LEAVE) {
                /* A scan is a part of the batch, and all hosts may scan at once. */
                ask->answer.scanners.blind = kind == QUERY_SCANNERS;
                ask_done(ask);
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
        .begin = backend_begin,
        .end = backend_end,
        .ask = backend_ask,
        .rtt_usec = backend_rtt_usec,
};
