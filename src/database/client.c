/* SPDX-License-Identifier: MIT */
/* sqmgr's end of a database; see database/database.h.
 *
 * A helper that dies, is silent, floods or sends an invalid message is killed, and another one is started
 * after a pause. Until that one is connected, the database is down. The loop reads the replies in pieces of
 * bounded size (io/message_socket.h). */
#include "database/messages.h"
#include "io/clock.h"
#include "io/message_socket.h"
#include "io/timer.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Limits of the pause before a helper is started again. */
#define PAUSE_MIN_USEC USEC_PER_SEC
#define PAUSE_MAX_USEC USEC_PER_MIN
/* After a helper has been connected for this time, the pause starts at its minimum again. */
#define SETTLED_USEC (10 * USEC_PER_SEC)
/* Limit of the time for a reply, as a multiple of the timeout, which the helper applies itself. */
#define REPLY_TIMEOUTS 10
/* Limit of unasked reports, per UNASKED_USEC. A server that goes down and up repeatedly causes about ten. */
#define UNASKED_MAX  100
#define UNASKED_USEC (10 * USEC_PER_SEC)
/* A helper that has closed its socket must end within this time. */
#define END_USEC USEC_PER_SEC
/* Limit of bytes that the helper has not read yet: the settings, a ping and a batch. */
#define SEND_MAX (2 * DATABASE_REQUEST_MAX)

struct batch {
        const struct database_batch_ops *ops; /* NULL: no batch, or it has ended */
        void *userdata;
        size_t n; /* statements */
        size_t rows, bytes;
};

struct database {
        sd_event *event;
        sd_event_source *timer; /* next start, ping or check for silence */
        enum database_engine engine;
        struct database_starter *starter;
        char *url, *probe;
        usec_t timeout;

        struct database_helper *helper; /* NULL: none runs */
        struct message_socket *message_socket;
        usec_t asked_at;      /* time of the oldest message without reply; 0: none */
        usec_t connected_at;  /* when this helper was first connected; 0: it never was */
        unsigned failures;    /* consecutive, for the pause */
        usec_t unasked_since; /* start of the current UNASKED_USEC */
        unsigned unasked;
        uint64_t connections_before; /* of the helpers before this one */

        const struct database_ops *ops;
        void *userdata;
        enum database_state state;
        struct error_report error; /* text "": none */
        usec_t rtt_usec;
        uint64_t connections;

        struct batch batch;

        unsigned entered; /* number of enter() without leave() */
        bool freed;       /* nothing is reported any more */
};

static void destroy(struct database *database)
{
        sd_event_source_disable_unref(database->timer);
        sd_event_unref(database->event);
        free(database->url);
        free(database->probe);
        free(database);
}

DEFINE_ENTER_AND_LEAVE(struct database, enter, leave, destroy)

static void arm(struct database *database, usec_t delay)
{
        timer_set(database->timer, usec_add(clock_now(CLOCK_MONOTONIC), delay));
}

/* Returns true if the state or the error is another one: report_state() is then due. */
static bool change_state(struct database *database, enum database_state state,
                         const struct error_report *error)
{
        if (database->state == state && error_report_equal(&database->error, error))
                return false;
        database->state = state;
        database->error = *error;
        return true;
}

static void report_state(struct database *database)
{
        if (!database->freed)
                database->ops->state(database, database->state, database_error(database), database->userdata);
}

/* Ends the batch, if there is one. error NULL: no error. */
static void end_batch(struct database *database, enum database_result result,
                      const struct error_report *error)
{
        const struct database_batch_ops *ops = TAKE_PTR(database->batch.ops);

        if (ops)
                ops->done(result, error, database->batch.userdata);
}

static void drop_helper(struct database *database)
{
        struct database_helper *helper = TAKE_PTR(database->helper);

        database->message_socket = message_socket_free(database->message_socket);
        database->asked_at = 0;
        if (helper)
                database->starter->stop(helper);
}

static void go_down(struct database *database, const struct error_report *error)
{
        bool changed = change_state(database, DATABASE_DOWN, error);

        database->connections_before = database->connections;
        database->rtt_usec = 0;
        enter(database);
        end_batch(database, DATABASE_LOST, error);
        if (changed)
                report_state(database);
        leave(database);
}

/* Ends the helper, if one runs, and has another one started after a pause. */
static _printf_(2, 3) void fail(struct database *database, const char *format, ...)
{
        struct error_report error = {0};
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(error.text, sizeof(error.text), format, arguments);
        va_end(arguments);
        drop_helper(database);
        if (database->connected_at != 0 &&
            usec_sub(clock_now(CLOCK_MONOTONIC), database->connected_at) >= SETTLED_USEC)
                database->failures = 0;
        database->connected_at = 0;
        database->failures++;
        arm(database, reconnect_delay(database->failures, PAUSE_MIN_USEC, PAUSE_MAX_USEC));
        go_down(database, &error);
}

void database_drop(struct database *database, const struct error_report *error)
{
        if (!database->freed)
                fail(database, "%s", error->text);
}

static void refuse(struct database *database)
{
        fail(database, "%s sent an invalid message and was ended", database_engine_program(database->engine));
}

/* Returns 0 or -errno. */
static int send_message(struct database *database, struct codec_writer *writer)
{
        int r = writer->failed ? -ENOMEM
                               : message_socket_send(database->message_socket, writer->bytes, writer->size);

        free(writer->bytes);
        if (r >= 0 && database->asked_at == 0)
                database->asked_at = clock_now(CLOCK_MONOTONIC);
        return r;
}

static bool is_flood(struct database *database)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        if (usec_sub(now, database->unasked_since) >= UNASKED_USEC) {
                database->unasked_since = now;
                database->unasked = 0;
        }
        return ++database->unasked > UNASKED_MAX;
}

static void on_report(struct database *database, struct codec_reader *message)
{
        struct database_report report;

        bool asked = database->asked_at != 0 && !database->batch.ops;
        if (!database_report_read(message, &report) || (!asked && is_flood(database))) {
                refuse(database);
                return;
        }
        if (asked)
                database->asked_at = 0;
        /* Each helper counts from 1 on. Counts of earlier ones are added, so that no number repeats. */
        database->connections = usec_add(database->connections_before, report.connections);
        if (report.state == DATABASE_CONNECTED && database->connected_at == 0)
                database->connected_at = clock_now(CLOCK_MONOTONIC);
        if (report.state != DATABASE_CONNECTED) {
                database->rtt_usec = 0;
                arm(database, database->timeout);
        }
        /* A helper that connects for the first time does not hide why the one before it has failed. */
        if (report.state != DATABASE_CONNECTING && change_state(database, report.state, &report.error))
                report_state(database);
}

static void on_row(struct database *database, struct codec_reader *message)
{
        struct batch *batch = &database->batch;
        struct field values[DATABASE_COLUMNS_MAX];
        size_t statement = codec_read_number(message, 0, MAX(batch->n, (size_t)1) - 1);
        struct database_row row = {.values = values, .n = codec_read_number(message, 0, ELEMENTSOF(values))};

        for (size_t i = 0; i < row.n; i++) {
                values[i] = database_value_read(message);
                batch->bytes += values[i].len;
        }
        if (message->wrong || message->left > 0 || !batch->ops || batch->n == 0) {
                refuse(database);
                return;
        }
        if (++batch->rows > DATABASE_ROWS_MAX || batch->bytes > DATABASE_BYTES_MAX) {
                fail(database, "the database sent more rows or bytes than a batch may have");
                return;
        }
        int r = batch->ops->row(statement, &row, batch->userdata);
        if (r < 0 && !database->freed)
                fail(database, "the rows of the database cannot be used: %s", strerror(-r));
}

static void on_batch_end(struct database *database, struct codec_reader *message)
{
        struct database_end end;

        if (!database_end_read(message, &end) || !database->batch.ops) {
                refuse(database);
                return;
        }
        database->asked_at = 0;
        database->rtt_usec = end.rtt_usec;
        end_batch(database, end.result, end.result == DATABASE_DONE ? NULL : &end.error);
}

static void on_message(const uint8_t *bytes, size_t n, void *userdata)
{
        struct database *database = userdata;
        struct codec_reader message = {.at = bytes, .left = n};

        enter(database);
        switch ((enum database_message)codec_read_number(&message, DATABASE_STATE, _DATABASE_MESSAGE_MAX)) {
        case DATABASE_STATE:
                on_report(database, &message);
                break;
        case DATABASE_ROW:
                on_row(database, &message);
                break;
        case DATABASE_END:
                on_batch_end(database, &message);
                break;
        default:
                refuse(database);
                break;
        }
        leave(database);
}

/* The helper has ended or is about to. Its starter reports how. */
static void on_socket_end(int error, void *userdata)
{
        struct database *database = userdata;
        struct error_report report;

        enter(database);
        if (error == -EMSGSIZE) {
                refuse(database);
        } else {
                database->message_socket = message_socket_free(database->message_socket);
                database->asked_at = 0;
                arm(database, END_USEC);
                error_report_set(&report, "%s ended", database_engine_program(database->engine));
                go_down(database, &report);
        }
        leave(database);
}

static void on_helper_end(const char *how, void *userdata)
{
        struct database *database = userdata;

        database->helper = NULL;
        fail(database, "%s %s", database_engine_program(database->engine), how);
}

static int start_helper(struct database *database)
{
        static const struct message_socket_ops ops = {.on_message = on_message, .on_end = on_socket_end};
        static const struct message_socket_limits limits = {.receive = DATABASE_REPLY_MAX, .send = SEND_MAX};
        struct codec_writer writer = {0};
        int fd;

        int r = database->starter->start(database->starter, database->engine, on_helper_end, database,
                                         &database->helper, &fd);
        if (r >= 0)
                r = message_socket_new(database->event, fd, &limits, &ops, database,
                                       &database->message_socket);
        if (r < 0)
                return r;
        database->unasked = 0;
        codec_write_number(&writer, DATABASE_SETTINGS);
        codec_write_number(&writer, database->timeout);
        database_text_write(&writer, database->url);
        database_text_write(&writer, database->probe);
        return send_message(database, &writer);
}

static void start_or_fail(struct database *database)
{
        const char *program = database_engine_program(database->engine);
        int r = start_helper(database);

        if (r >= 0)
                arm(database, database->timeout);
        else if (r == -ENOENT)
                fail(database, "the program %s is missing; install the package %s", program, program);
        else if (r == -EBUSY)
                fail(database,
                     "killed helpers %s do not end; check whether the file system of the database responds",
                     program);
        else
                fail(database, "cannot start %s: %s", program, strerror(-r));
}

/* A helper that is connected and idle is left alone: the next batch shows whether it responds. */
static void check_helper(struct database *database)
{
        usec_t limit = REPLY_TIMEOUTS * database->timeout;
        usec_t waited = usec_sub(clock_now(CLOCK_MONOTONIC), database->asked_at);
        struct codec_writer writer = {0};

        if (database->asked_at == 0 && database->state != DATABASE_CONNECTED) {
                codec_write_number(&writer, DATABASE_PING);
                if (send_message(database, &writer) < 0)
                        fail(database, "out of memory");
                else
                        arm(database, database->timeout);
        } else if (database->asked_at != 0 && waited >= limit) {
                fail(database, "%s did not answer and was ended", database_engine_program(database->engine));
        } else if (database->asked_at != 0) {
                arm(database, MIN(database->timeout, limit - waited));
        }
}

static int on_timer(sd_event_source *source _unused_, uint64_t due, void *userdata)
{
        struct database *database = userdata;

        enter(database);
        /* The loop itself may be late, as after a stop of this process: the helper has time again. */
        if (database->asked_at != 0 &&
            usec_sub(clock_now(CLOCK_MONOTONIC), due) >= REPLY_TIMEOUTS * database->timeout / 2)
                database->asked_at = clock_now(CLOCK_MONOTONIC);
        if (!database->helper)
                start_or_fail(database);
        else if (!database->message_socket)
                fail(database, "%s closed its connection to sqmgr and was ended",
                     database_engine_program(database->engine));
        else
                check_helper(database);
        leave(database);
        return 0;
}

int database_new(sd_event *event, const struct database_settings *settings, const struct database_ops *ops,
                 void *userdata, struct database **ret)
{
        struct database *database = calloc(1, sizeof(*database));

        if (!database)
                return -ENOMEM;
        *database = (struct database){
                .event = sd_event_ref(event),
                .engine = settings->engine,
                .starter = settings->starter,
                .ops = ops,
                .userdata = userdata,
                .url = strdup(settings->url),
                .probe = strdup(settings->probe),
                .timeout = settings->timeout,
        };
        int r = database->url && database->probe ? 0 : -ENOMEM;
        if (r >= 0)
                r = sd_event_add_time(event, &database->timer, CLOCK_MONOTONIC, 0, 1, on_timer, database);
        /* Input goes first: what has arrived counts before the helper is found silent. */
        if (r >= 0)
                r = sd_event_source_set_priority(database->timer, SD_EVENT_PRIORITY_NORMAL + 10);
        if (r < 0) {
                destroy(database);
                return r;
        }
        *ret = database;
        return 0;
}

struct database *database_free(struct database *database)
{
        struct error_report error;

        if (!database || database->freed)
                return NULL;
        database->freed = true;
        (void)sd_event_source_set_enabled(database->timer, SD_EVENT_OFF);
        drop_helper(database);
        error_report_set(&error, "connection closed");
        enter(database);
        end_batch(database, DATABASE_LOST, &error);
        leave(database);
        return NULL;
}

static void write_batch(struct codec_writer *writer, const struct database_statement *statements, size_t n,
                        bool writes)
{
        codec_write_number(writer, DATABASE_BATCH);
        codec_write_number(writer, writes);
        codec_write_number(writer, n);
        for (size_t i = 0; i < n; i++) {
                codec_write_number(writer, statements[i].n);
                database_text_write(writer, statements[i].sql);
                for (size_t k = 0; k < statements[i].n; k++)
                        database_text_write(writer, statements[i].parameters[k]);
        }
}

int database_run(struct database *database, const struct database_statement *statements, size_t n,
                 bool writes, const struct database_batch_ops *ops, void *userdata)
{
        struct codec_writer writer = {0};

        if (database->state != DATABASE_CONNECTED || !database->message_socket || database->freed)
                return -ENOTCONN;
        if (database->batch.ops)
                return -EBUSY;
        write_batch(&writer, statements, n, writes);
        /* The helper rejects a longer message. */
        if (writer.size > DATABASE_REQUEST_MAX) {
                free(writer.bytes);
                return -ENOBUFS;
        }
        int r = send_message(database, &writer);
        if (r < 0)
                return r;
        database->asked_at = clock_now(CLOCK_MONOTONIC);
        database->batch = (struct batch){.ops = ops, .userdata = userdata, .n = n};
        arm(database, database->timeout);
        return 0;
}

enum database_state database_state(const struct database *database)
{
        return database->state;
}

const struct error_report *database_error(const struct database *database)
{
        return database->error.text[0] != '\0' ? &database->error : NULL;
}

usec_t database_rtt_usec(const struct database *database)
{
        return database->rtt_usec;
}

uint64_t database_connection_count(const struct database *database)
{
        return database->connections;
}
