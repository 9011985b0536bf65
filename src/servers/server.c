/* SPDX-License-Identifier: MIT */
/* A server that sqmgr reads; see the header. */
#include "servers/server.h"
#include "base/printable.h"
#include "continuity/quarantine.h"
#include <stdarg.h>
#include <stdio.h>

struct reader {
        sd_event *event;
        sd_event_source *soon; /* delivers what was known within a call that must not deliver it */
        const struct reader_backend *ops;
        void *backend; /* NULL: none could be made, or the server is freed */
        reader_state_fn on_state;
        void *userdata;
        reader_decoding_fn decoding;
        void *decoding_userdata;
        char *url_text;
        uint32_t quarantine_key; /* of url_text, computed once: each input needs it */

        struct reader_report report;
        uint64_t connections;         /* of backends before this one */
        struct error_report unusable; /* why there is no backend; to be reported */

        struct ask *asks; /* without a delivered answer, oldest first */
        struct ask **end;
        unsigned asking;  /* calls of reader_ask() on the stack */
        unsigned decoded; /* calls of reader_decoding(true) without that of false */
        unsigned entered; /* our calls on the stack that need the object afterwards */
        bool freed;
};

static const char *const state_names[] = {
        [READER_STATE_CONNECTING] = "connecting",
        [READER_STATE_CONNECTED] = "connected",
        [READER_STATE_DOWN] = "down",
        [READER_STATE_SLOW] = "down",
        [READER_STATE_REFUSING] = "connected",
};
DEFINE_ENUM_NAMES(reader_state_name, enum reader_state, _READER_STATE_MAX, state_names)

static void reader_destroy(struct reader *reader)
{
        sd_event_source_disable_unref(reader->soon);
        sd_event_unref(reader->event);
        free(reader->url_text);
        free(reader);
}

/* Enclose all calls of callbacks. The object stays until the outermost call has returned, and until the
 * backend has ended each ask: one that is freed from within an answer may still hold others. */
static void reader_enter(struct reader *reader)
{
        reader->entered++;
}

static void reader_leave(struct reader *reader)
{
        /* -fanalyzer: each leave follows an enter, so the object stays until the last leave. */
        if (--reader->entered == 0 && reader->freed && !reader->asks)
                reader_destroy(reader);
}

void reader_decoding(struct reader *reader, bool begins)
{
        if (begins) {
                reader_enter(reader);
                if (reader->decoded++ == 0 && reader->decoding)
                        reader->decoding(reader, reader->decoding_userdata);
        } else {
                if (--reader->decoded == 0 && reader->decoding)
                        reader->decoding(NULL, reader->decoding_userdata);
                reader_leave(reader);
        }
}

static void clean_error(struct error_report *error)
{
        printable_replace(error->text, strlen(error->text), false);
        quoted_clean(&error->quoted);
}

void reader_report_state(struct reader *reader, const struct reader_report *report)
{
        const struct reader_report before = reader->report;

        if (reader->freed)
                return;
        reader->report = *report;
        reader->report.connections += reader->connections;
        clean_error(&reader->report.error);
        printable_replace(reader->report.server, strlen(reader->report.server), false);
        bool same = before.state == report->state && error_report_equal(&before.error, &reader->report.error);
        reader_enter(reader);
        if (!same && reader->on_state)
                reader->on_state(reader, report->state, reader_error(reader), reader->userdata);
        reader_leave(reader);
}

static void ask_unlink(struct ask *ask)
{
        struct reader *reader = ask->reader;
        struct ask **link = &reader->asks;

        /* Answers come mostly in the order of the queries, so the ask is near the start. */
        while (*link != ask)
                link = &(*link)->next;
        *link = ask->next;
        if (!ask->next)
                reader->end = link;
}

static void ask_free(struct ask *ask)
{
        if (ask->answer)
                answer_clear(ask->answer);
        free(ask->answer);
        free(ask);
}

static void call_back(struct ask *ask, struct answer *answer)
{
        reader_answer_fn callback = TAKE_PTR(ask->callback);

        if (callback)
                callback(answer, ask->userdata);
}

static void call_back_lost(struct ask *ask, const char *why)
{
        struct answer answer = {.kind = ask->query.kind, .status = ANSWER_LOST};

        error_report_set(&answer.error, "%s", why);
        call_back(ask, &answer);
}

static void deliver(struct ask *ask, struct answer *answer)
{
        struct reader *reader = ask->reader;

        reader_enter(reader);
        ask_unlink(ask);
        call_back(ask, answer);
        answer_clear(answer);
        ask_free(ask);
        reader_leave(reader);
}

/* Keeps the answer until the loop runs. */
static void deliver_soon(struct ask *ask, struct answer *answer)
{
        ask->answered = true;
        ask->answer = malloc(sizeof(*answer));
        if (ask->answer)
                *ask->answer = *answer;
        else
                answer_clear(answer);
        /* The call does not fail for a source of our own. */
        (void)sd_event_source_set_enabled(ask->reader->soon, SD_EVENT_ONESHOT);
}

static void answer_ask(struct ask *ask, struct answer *answer)
{
        answer->kind = ask->query.kind;
        clean_error(&answer->error);
        if (ask->reader->asking > 0)
                deliver_soon(ask, answer);
        else
                deliver(ask, answer);
}

void ask_done(struct ask *ask, struct answer *answer)
{
        answer->status = ANSWER_OK;
        answer_ask(ask, answer);
}

void ask_fail(struct ask *ask, enum answer_status status, const char *format, ...)
{
        struct answer answer = {.status = status};
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(answer.error.text, sizeof(answer.error.text), format, arguments);
        va_end(arguments);
        answer_ask(ask, &answer);
}

void ask_fail_as(struct ask *ask, enum answer_status status, const struct error_report *error)
{
        struct answer answer = {.status = status, .error = *error};

        answer_ask(ask, &answer);
}

void ask_fail_unknown(struct ask *ask)
{
        ask_fail(ask, ANSWER_REFUSED, "the server does not support this");
}

void ask_fail_errno(struct ask *ask, int error)
{
        ask_fail(ask, ANSWER_LOST, "%s", error == -ENOMEM ? "out of memory" : "connection lost");
}

void *ask_backend(const struct ask *ask)
{
        return ask->reader->backend;
}

sd_event *reader_event(const struct reader *reader)
{
        return reader->event;
}

static void report_unusable(struct reader *reader)
{
        const struct reader_report report = {.state = READER_STATE_DOWN, .error = reader->unusable};

        reader->unusable = (struct error_report){0};
        reader_report_state(reader, &report);
}

static struct ask *first_answered(const struct reader *reader)
{
        struct ask *ask = reader->asks;

        while (ask && !ask->answered)
                ask = ask->next;
        return ask;
}

static int on_soon(sd_event_source *source _unused_, void *userdata)
{
        struct reader *reader = userdata;
        struct ask *ask;

        reader_enter(reader);
        if (reader->unusable.text[0] != '\0')
                report_unusable(reader);
        while ((ask = first_answered(reader))) {
                ask_unlink(ask);
                if (ask->answer)
                        call_back(ask, ask->answer);
                else
                        call_back_lost(ask, "out of memory");
                ask_free(ask);
        }
        reader_leave(reader);
        return 0;
}

int reader_new(sd_event *event, const struct reader_options *options, struct reader **ret)
{
        struct reader *reader = calloc(1, sizeof(*reader));

        if (!reader)
                return -ENOMEM;
        *reader = (struct reader){
                .event = sd_event_ref(event),
                .ops = options->backend,
                .on_state = options->on_state,
                .userdata = options->userdata,
                .decoding = options->decoding,
                .decoding_userdata = options->decoding_userdata,
                .url_text = options->backend->url_text(options),
        };
        reader->end = &reader->asks;
        int r = reader->url_text ? sd_event_add_defer(event, &reader->soon, on_soon, reader) : -ENOMEM;
        if (r >= 0)
                r = sd_event_source_set_enabled(reader->soon, SD_EVENT_OFF);
        if (r >= 0)
                r = reader->ops->begin(reader, options, &reader->unusable, &reader->backend);
        if (r < 0 && reader->unusable.text[0] != '\0')
                r = sd_event_source_set_enabled(reader->soon, SD_EVENT_ONESHOT);
        if (r < 0) {
                reader_destroy(reader);
                return r;
        }
        reader->quarantine_key = quarantine_key(reader->url_text);
        *ret = reader;
        return 0;
}

/* Frees the asks that no backend holds, or whose work does not end with the connection. */
static void end_asks(struct reader *reader)
{
        struct ask *next;

        for (struct ask *ask = reader->asks; ask; ask = next) {
                next = ask->next;
                if (!ask->answered && !ask->cancel)
                        continue;
                if (!ask->answered)
                        ask->cancel(ask);
                ask_unlink(ask);
                ask_free(ask);
        }
}

/* Calls back what is pending, and ends the backend. No ask is added meanwhile, but a callback may free the
 * server. */
static void disconnect(struct reader *reader)
{
        struct ask *ask = reader->asks;

        while (ask) {
                bool awaited = ask->callback;

                if (awaited)
                        call_back_lost(ask, "connection lost");
                ask = awaited ? reader->asks : ask->next;
        }
        end_asks(reader);
        if (reader->backend)
                reader->ops->end(reader->backend);
        reader->backend = NULL;
}

struct reader *reader_free(struct reader *reader)
{
        if (!reader || reader->freed)
                return NULL;
        reader->freed = true;
        (void)sd_event_source_set_enabled(reader->soon, SD_EVENT_OFF);
        reader_enter(reader);
        disconnect(reader);
        reader_leave(reader);
        return NULL;
}

void reader_pause(struct reader *reader, const char *why)
{
        struct reader_report report = {.state = READER_STATE_DOWN};

        error_report_set(&report.error, "%s", why);
        reader->connections = reader->report.connections;
        /* Refuses queries from now on. */
        reader->report.state = READER_STATE_DOWN;
        reader_enter(reader);
        disconnect(reader);
        reader_report_state(reader, &report);
        reader_leave(reader);
}

int reader_resume(struct reader *reader, const struct reader_options *options)
{
        struct error_report why = {0};

        return reader->ops->begin(reader, options, &why, &reader->backend);
}

/* Returns an ask with a copy of the query, in one piece of memory; NULL if memory is short. */
static struct ask *ask_new(const struct query *query)
{
        size_t size = sizeof(struct ask) + query->n_texts * sizeof(struct field);
        size_t length = 0;

        for (size_t i = 0; i < query->n_texts; i++)
                length += query->texts[i].len + 1;
        struct ask *ask = malloc(size + length);
        if (!ask)
                return NULL;
        struct field *texts = (struct field *)(ask + 1);
        char *at = (char *)ask + size;
        *ask = (struct ask){.query = *query};
        ask->query.texts = texts;
        for (size_t i = 0; i < query->n_texts; i++) {
                size_t len = query->texts[i].len;

                if (len > 0)
                        memcpy(at, query->texts[i].text, len);
                at[len] = '\0';
                texts[i] = (struct field){.text = at, .len = len};
                at += len + 1;
        }
        return ask;
}

int reader_ask(struct reader *reader, const struct query *query, reader_answer_fn callback, void *userdata)
{
        struct ask *ask;

        if (reader->freed || !reader->backend || !reader_state_answers(reader->report.state))
                return -ENOTCONN;
        ask = ask_new(query);
        if (!ask)
                return -ENOMEM;
        ask->reader = reader;
        ask->callback = callback;
        ask->userdata = userdata;
        *reader->end = ask;
        reader->end = &ask->next;
        reader->asking++;
        reader->ops->ask(reader->backend, ask);
        reader->asking--;
        return 0;
}

void reader_forget(struct reader *reader, const void *userdata)
{
        for (struct ask *ask = reader->asks; ask; ask = ask->next)
                if (ask->userdata == userdata)
                        ask->callback = NULL;
}

enum reader_state reader_state(const struct reader *reader)
{
        return reader->report.state;
}

const struct error_report *reader_error(const struct reader *reader)
{
        return reader->report.error.text[0] != '\0' ? &reader->report.error : NULL;
}

const char *reader_url_text(const struct reader *reader)
{
        return reader->url_text;
}

uint32_t reader_quarantine_key(const struct reader *reader)
{
        return reader->quarantine_key;
}

const char *reader_server_text(const struct reader *reader)
{
        bool named = reader_state_answers(reader->report.state) && reader->report.server[0] != '\0';

        return named ? reader->report.server : NULL;
}

usec_t reader_rtt_usec(const struct reader *reader)
{
        bool answers = reader->backend && reader_state_answers(reader->report.state);

        return answers ? reader->ops->rtt_usec(reader->backend) : 0;
}

uint64_t reader_connection_count(const struct reader *reader)
{
        return reader->report.connections;
}
