/* SPDX-License-Identifier: MIT */
/* sqmgr's end of a reader process; see the header. */
#include "io/reader.h"
#include "io/clock.h"
#include "io/message_socket.h"
#include "queries/configuration.h"
#include "settings/database_url.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Pause before a process is started again: doubled with each failure. Short, since a process costs little and
 * nothing is read meanwhile. */
#define PAUSE_MIN_USEC (50 * USEC_PER_MSEC)
#define PAUSE_MAX_USEC USEC_PER_SEC
/* After a process has been connected for this time, the pause starts at its minimum again. */
#define SETTLED_USEC (10 * USEC_PER_SEC)
/* Limit of one query, as a multiple of the timeout. A query takes a few commands, one after another. Each
 * may take ten times the timeout if its reply is large (redis/connection.c). */
#define QUERY_TIMEOUTS 40
/* A reader that has sent nothing for this long gets a ping. */
#define PING_USEC (5 * USEC_PER_SEC)
/* Limit of messages that answer no query, per UNASKED_USEC. A server that goes down and up repeatedly causes
 * about ten. */
#define UNASKED_MAX  100
#define UNASKED_USEC (10 * USEC_PER_SEC)
/* A reader that has closed its socket must end within this time. */
#define END_USEC USEC_PER_SEC
/* Limit of queries that the reader has not read yet, in bytes. */
#define SEND_MAX (2 * QUERY_BYTES_MAX)

struct pending_query {
        struct pending_query *next;
        uint64_t id;
        enum query_kind kind;
        usec_t asked_at;
        reader_answer_fn callback; /* NULL: nobody waits */
        void *userdata;
};

struct reader {
        sd_event *event;
        sd_event_source *timer; /* next start of a process, or next check for silence */
        struct reader_starter *starter;
        struct reader_configuration configuration;
        reader_state_fn on_state;
        void *userdata;

        struct reader_process *process; /* NULL: none runs */
        struct message_socket *message_socket;
        usec_t connected_at;                 /* when the process was first connected; 0: it never was */
        unsigned failures;                   /* consecutive, for the pause */
        usec_t heard_at;                     /* time of the last message */
        usec_t pinged_at;                    /* time of a ping since the last message; 0: none */
        usec_t unasked_since;                /* start of the current UNASKED_USEC */
        unsigned unasked;                    /* messages in that time that answer no query */
        uint64_t connections;                /* as reported by processes before this one */
        enum settings_tls_file refused_file; /* result of a check; _SETTINGS_TLS_MAX: none */
        uint64_t refusals;
        struct reader_report report;
        usec_t rtt_usec;
        bool refused; /* set by reader_refuse() */

        struct pending_query *queries; /* without an answer, oldest first */
        struct pending_query **end;
        uint64_t last_id;

        unsigned entered; /* number of reader_enter() without reader_leave() */
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
        sd_event_source_disable_unref(reader->timer);
        sd_event_unref(reader->event);
        reader_configuration_clear(&reader->configuration);
        free(reader);
}

/* Enclose all calls of callbacks: the object stays until the outermost call has returned. */
static void reader_enter(struct reader *reader)
{
        reader->entered++;
}

static void reader_leave(struct reader *reader)
{
        /* -fanalyzer: each leave follows an enter, so the object stays until the last leave. */
        if (--reader->entered == 0 && reader->freed)
                reader_destroy(reader);
}

static void arm(struct reader *reader, usec_t at)
{
        /* Neither call fails for our own event source. */
        (void)sd_event_source_set_time(reader->timer, at);
        (void)sd_event_source_set_enabled(reader->timer, SD_EVENT_ONESHOT);
}

static void set_report(struct reader *reader, const struct reader_report *report)
{
        bool same = reader->report.state == report->state &&
                    error_report_equal(&reader->report.error, &report->error);

        reader->report = *report;
        if (!same && reader->on_state && !reader->freed)
                reader->on_state(reader, report->state, reader_error(reader), reader->userdata);
}

/* Removes a query from the list, and calls back. */
static void finish(struct reader *reader, struct pending_query **link, struct answer *answer)
{
        struct pending_query *query = *link;

        *link = query->next;
        if (!query->next)
                reader->end = link;
        if (query->callback)
                query->callback(answer, query->userdata);
        answer_clear(answer);
        free(query);
}

static void fail_queries(struct reader *reader)
{
        while (reader->queries) {
                struct answer answer = {.kind = reader->queries->kind, .status = ANSWER_LOST};

                error_report_set(&answer.error, "connection lost");
                finish(reader, &reader->queries, &answer);
        }
}

static void process_drop(struct reader *reader)
{
        struct reader_process *process = TAKE_PTR(reader->process);

        reader->message_socket = message_socket_free(reader->message_socket);
        if (process)
                reader->starter->stop(process);
}

/* Ends the process, if one runs, and has another one started after a pause. */
static _printf_(2, 3) void process_failed(struct reader *reader, const char *format, ...)
{
        struct reader_report report = {.state = READER_STATE_DOWN, .connections = reader->report.connections};
        usec_t pause = PAUSE_MIN_USEC;
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(report.error.text, sizeof(report.error.text), format, arguments);
        va_end(arguments);
        process_drop(reader);
        if (reader->connected_at != 0 &&
            usec_sub(clock_now(CLOCK_MONOTONIC), reader->connected_at) >= SETTLED_USEC)
                reader->failures = 0;
        for (unsigned i = 0; i < reader->failures && pause < PAUSE_MAX_USEC; i++)
                pause *= 2;
        reader->failures++;
        reader->connected_at = 0;
        reader->rtt_usec = 0;
        reader->connections = report.connections;
        reader_enter(reader);
        arm(reader, usec_add(clock_now(CLOCK_MONOTONIC), MIN(pause, PAUSE_MAX_USEC)));
        fail_queries(reader);
        set_report(reader, &report);
        reader_leave(reader);
}

static void refuse(struct reader *reader)
{
        reader->refusals++;
        process_failed(reader, "the reader process sent an invalid message and was ended");
}

static struct pending_query **find_query(struct reader *reader, uint64_t id)
{
        struct pending_query **link = &reader->queries;

        while (*link && (*link)->id != id)
                link = &(*link)->next;
        return link;
}

static void on_answer(struct reader *reader, struct codec_reader *bytes)
{
        struct pending_query **link = find_query(reader, answer_read_id(bytes));
        struct answer answer;

        if (bytes->wrong || !*link) {
                refuse(reader);
                return;
        }
        int r = answer_read(bytes, (*link)->kind, &answer);
        if (r == -EBADMSG) {
                refuse(reader);
        } else if (r < 0) {
                process_failed(reader, "out of memory");
        } else if (answer.kind == QUERY_CONFIGURE && answer.status != ANSWER_OK) {
                process_failed(reader, "%s", answer.error.text);
        } else {
                const struct error_report why = answer.error;
                bool judged = answer.kind == QUERY_CONFIGURE && reader->configuration.check;

                if (judged)
                        reader->refused_file = answer.configure.refused;
                reader->rtt_usec = answer.rtt_usec;
                finish(reader, link, &answer);
                if (reader->refused && !reader->freed)
                        refuse(reader);
                /* -fanalyzer: the caller has entered, so the object stays until the caller leaves. */
                reader->refused = false;
                if (judged && reader->on_state)
                        reader->on_state(reader, reader->report.state, why.text[0] != '\0' ? &why : NULL,
                                         reader->userdata);
        }
}

static void on_report(struct reader *reader, struct codec_reader *bytes)
{
        struct reader_report report;

        if (reader_report_read(bytes, &report) < 0) {
                refuse(reader);
                return;
        }
        /* Each process counts from 1 on. Add the counts of earlier processes, so that no number repeats. */
        report.connections = usec_add(report.connections, reader->connections);
        if (reader_state_answers(report.state) && reader->connected_at == 0)
                reader->connected_at = reader->heard_at;
        if (!reader_state_answers(report.state))
                reader->rtt_usec = 0;
        set_report(reader, &report);
}

static bool is_flood(struct reader *reader)
{
        if (usec_sub(reader->heard_at, reader->unasked_since) >= UNASKED_USEC) {
                reader->unasked_since = reader->heard_at;
                reader->unasked = 0;
        }
        return ++reader->unasked > UNASKED_MAX;
}

static void on_message(const uint8_t *bytes, size_t n, void *userdata)
{
        struct reader *reader = userdata;
        struct codec_reader message = {.at = bytes, .left = n};

        reader_enter(reader);
        reader->heard_at = clock_now(CLOCK_MONOTONIC);
        reader->pinged_at = 0;
        enum reader_message kind = (enum reader_message)codec_read_number(&message, 0, _READER_MESSAGE_MAX);
        if (kind != READER_ANSWER && is_flood(reader))
                kind = _READER_MESSAGE_MAX;
        switch (kind) {
        case READER_ANSWER:
                on_answer(reader, &message);
                break;
        case READER_STATE:
                on_report(reader, &message);
                break;
        default:
                refuse(reader);
                break;
        }
        reader_leave(reader);
}

/* The process has ended or is about to. Its starter reports how. */
static void on_socket_end(int error, void *userdata)
{
        struct reader *reader = userdata;
        struct reader_report report = {.state = READER_STATE_DOWN, .connections = reader->report.connections};

        reader_enter(reader);
        if (error == -EMSGSIZE) {
                refuse(reader);
        } else {
                error_report_set(&report.error, "the reader process exited");
                reader->message_socket = message_socket_free(reader->message_socket);
                arm(reader, usec_add(clock_now(CLOCK_MONOTONIC), END_USEC));
                fail_queries(reader);
                set_report(reader, &report);
        }
        reader_leave(reader);
}

static void on_process_end(const char *how, void *userdata)
{
        struct reader *reader = userdata;

        reader->process = NULL;
        process_failed(reader, "the reader process %s", how);
}

/* Returns 0 or -errno. */
static int send_message(struct reader *reader, struct codec_writer *writer)
{
        int r = writer->failed ? -ENOMEM
                               : message_socket_send(reader->message_socket, writer->bytes, writer->size);

        free(writer->bytes);
        return r;
}

static int queue_query(struct reader *reader, enum query_kind kind, struct codec_writer *writer,
                       reader_answer_fn callback, void *userdata)
{
        struct pending_query *pending = malloc(sizeof(*pending));

        if (!pending) {
                free(writer->bytes);
                return -ENOMEM;
        }
        int r = send_message(reader, writer);
        if (r < 0) {
                free(pending);
                return r;
        }
        *pending = (struct pending_query){
                .id = reader->last_id,
                .kind = kind,
                .asked_at = clock_now(CLOCK_MONOTONIC),
                .callback = callback,
                .userdata = userdata,
        };
        *reader->end = pending;
        reader->end = &pending->next;
        return 0;
}

static int process_start(struct reader *reader)
{
        static const struct message_socket_ops ops = {.on_message = on_message, .on_end = on_socket_end};
        static const struct message_socket_limits limits = {.receive = ANSWER_BYTES_MAX, .send = SEND_MAX};
        struct codec_writer writer = {0};
        int fd;

        int r = reader->starter->start(reader->starter, &reader->configuration, on_process_end, reader,
                                       &reader->process, &fd);
        if (r < 0)
                return r;
        reader->heard_at = clock_now(CLOCK_MONOTONIC);
        reader->pinged_at = 0;
        reader->unasked = 0;
        r = message_socket_new(reader->event, fd, &limits, &ops, reader, &reader->message_socket);
        if (r < 0)
                return r;
        reader_configuration_write(&writer, &reader->configuration);
        reader->last_id = 0;
        return queue_query(reader, QUERY_CONFIGURE, &writer, NULL, NULL);
}

/* Ends in the name of the Debian package, and of the program. */
static const char *const packages[] = {[DATABASE_POSTGRESQL] = "postgresql", [DATABASE_SQLITE] = "sqlite"};
static_assert(ELEMENTSOF(packages) == _DATABASE_ENGINE_MAX, "a package for each engine");

static void start_or_fail(struct reader *reader, usec_t now)
{
        unsigned engine = reader->configuration.engine;
        int r = process_start(reader);

        if (r >= 0)
                arm(reader, usec_add(now, PING_USEC));
        else if (r == -ENOENT && engine < _DATABASE_ENGINE_MAX)
                process_failed(reader, "the program sqmgr-reader-%s is missing; install the package sqmgr-%s",
                               packages[engine], packages[engine]);
        else if (r == -EBUSY)
                process_failed(reader,
                               "killed reader processes do not end; check whether the file system of the "
                               "database responds");
        else
                process_failed(reader, "cannot start the reader process: %s", strerror(-r));
}

static void ask_whether_it_lives(struct reader *reader, usec_t now)
{
        const struct query ping = {.kind = QUERY_PING};
        struct codec_writer writer = {0};

        reader->pinged_at = now;
        query_write(&writer, ++reader->last_id, &ping);
        /* Errors are ignored: a reader that cannot receive a ping is replaced for its silence. */
        (void)queue_query(reader, QUERY_PING, &writer, NULL, NULL);
}

/* Returns true if the oldest query is overdue, although the reader may answer pings. */
static bool is_overdue(const struct reader *reader, usec_t now)
{
        usec_t limit = usec_add(READER_SILENCE_USEC, QUERY_TIMEOUTS * reader->configuration.timeout);

        return reader->queries && usec_sub(now, reader->queries->asked_at) >= limit;
}

static int on_timer(sd_event_source *source _unused_, uint64_t due _unused_, void *userdata)
{
        struct reader *reader = userdata;
        usec_t now = clock_now(CLOCK_MONOTONIC);

        reader_enter(reader);
        if (!reader->process) {
                start_or_fail(reader, now);
        } else if (!reader->message_socket) {
                process_failed(reader, "the reader process closed its connection to sqmgr and was ended");
        } else if ((reader->pinged_at != 0 && usec_sub(now, reader->pinged_at) >= READER_SILENCE_USEC) ||
                   is_overdue(reader, now)) {
                process_failed(reader, "the reader process did not answer and was ended");
        } else {
                if (reader->pinged_at == 0 && usec_sub(now, reader->heard_at) >= PING_USEC)
                        ask_whether_it_lives(reader, now);
                arm(reader, usec_add(now, PING_USEC));
        }
        reader_leave(reader);
        return 0;
}

int reader_new(sd_event *event, struct reader_starter *starter, struct reader_configuration *configuration,
               reader_state_fn on_state, void *userdata, struct reader **ret)
{
        struct reader *reader = calloc(1, sizeof(*reader));

        if (!reader)
                return -ENOMEM;
        reader->event = sd_event_ref(event);
        reader->starter = starter;
        reader->on_state = on_state;
        reader->userdata = userdata;
        reader->end = &reader->queries;
        reader->refused_file = _SETTINGS_TLS_MAX;
        int r = sd_event_add_time(event, &reader->timer, CLOCK_MONOTONIC, 0, 1, on_timer, reader);
        /* Input goes first: what has arrived counts before the reader is found silent. */
        if (r >= 0)
                r = sd_event_source_set_priority(reader->timer, SD_EVENT_PRIORITY_NORMAL + 10);
        if (r < 0) {
                reader_destroy(reader);
                return r;
        }
        reader->configuration = *configuration;
        *configuration = (struct reader_configuration){0};
        *ret = reader;
        return 0;
}

struct reader *reader_free(struct reader *reader)
{
        if (!reader || reader->freed)
                return NULL;
        reader->freed = true;
        (void)sd_event_source_set_enabled(reader->timer, SD_EVENT_OFF);
        reader_enter(reader);
        process_drop(reader);
        fail_queries(reader);
        reader_leave(reader);
        return NULL;
}

int reader_ask(struct reader *reader, const struct query *query, reader_answer_fn callback, void *userdata)
{
        struct codec_writer writer = {0};

        if (!reader_state_answers(reader->report.state) || !reader->message_socket)
                return -ENOTCONN;
        query_write(&writer, ++reader->last_id, query);
        /* The reader rejects a longer message. */
        if (writer.size > QUERY_BYTES_MAX) {
                free(writer.bytes);
                return -ENOBUFS;
        }
        return queue_query(reader, query->kind, &writer, callback, userdata);
}

void reader_forget(struct reader *reader, const void *userdata)
{
        for (struct pending_query *query = reader->queries; query; query = query->next)
                if (query->userdata == userdata)
                        query->callback = NULL;
}

void reader_refuse(struct reader *reader)
{
        reader->refused = true;
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
        return reader->configuration.url_text;
}

const char *reader_server_text(const struct reader *reader)
{
        bool named = reader_state_answers(reader->report.state) && reader->report.server[0] != '\0';

        return named ? reader->report.server : NULL;
}

usec_t reader_rtt_usec(const struct reader *reader)
{
        return reader->rtt_usec;
}

uint64_t reader_connection_count(const struct reader *reader)
{
        return reader->report.connections;
}

uint64_t reader_refusals(const struct reader *reader)
{
        return reader->refusals;
}

enum settings_tls_file reader_refused_file(const struct reader *reader)
{
        return reader->refused_file;
}
