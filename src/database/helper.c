/* SPDX-License-Identifier: MIT */
/* The helper programs sqmgr-postgresql and sqmgr-sqlite: this file and one driver. sqmgr starts them, for one
 * database each. Standard input is a SOCK_SEQPACKET socket to sqmgr; the helper ends with it. */
#include "database/driver.h"
#include "database/messages.h"
#include "io/clock.h"
#include "io/message_socket.h"
#include "io/timer.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* Limit of replies that sqmgr has not read yet: the values of a batch, and as much again for their lengths.
 */
#define SEND_MAX (2 * DATABASE_BYTES_MAX)
/* The replies may take three times SEND_MAX / 2 while their buffer grows. The rest is for libraries. */
#define MEMORY_MAX_BYTES ((rlim_t)256 << 20)

/* Limits of the pause before the next attempt to connect. */
#define BACKOFF_MIN_USEC (100 * USEC_PER_MSEC)
#define BACKOFF_MAX_USEC (5 * USEC_PER_SEC)
/* After a connection of this duration, the backoff starts at its minimum again. */
#define BACKOFF_RESET_USEC (10 * USEC_PER_SEC)

struct helper {
        sd_event *event;
        struct message_socket *message_socket;
        sd_event_source *attempt; /* timer of the next attempt to connect */
        sd_event_source *io;      /* of the connection, between two batches; NULL: none */
        char *url, *probe;        /* NULL: no settings yet */
        struct database_settings settings;
        struct database_report report;
        usec_t up_at;
        unsigned failures; /* consecutive, for the backoff */
};

/* Ends the helper after a failure: sqmgr would wait for the reply in vain. */
static void fail(struct helper *helper)
{
        (void)sd_event_exit(helper->event, -EIO);
}

/* Returns 0 or -errno. */
static int send_message(struct helper *helper, struct codec_writer *writer)
{
        int r = writer->failed ? -ENOMEM
                               : message_socket_send(helper->message_socket, writer->bytes, writer->size);

        free(writer->bytes);
        return r;
}

static void send_state(struct helper *helper)
{
        struct codec_writer writer = {0};

        database_report_write(&writer, &helper->report);
        if (send_message(helper, &writer) < 0)
                fail(helper);
}

static void set_state(struct helper *helper, enum database_state state, const struct error_report *error)
{
        if (helper->report.state == state && error_report_equal(&helper->report.error, error))
                return;
        helper->report.state = state;
        helper->report.error = *error;
        send_state(helper);
}

static void arm(struct helper *helper, usec_t delay)
{
        timer_set(helper->attempt, usec_add(clock_now(CLOCK_MONOTONIC), delay));
}

/* The connection, or an attempt to make one, has failed. */
static void lose(struct helper *helper, const struct error_report *error)
{
        helper->io = sd_event_source_disable_unref(helper->io);
        driver_close();
        if (helper->report.state == DATABASE_CONNECTED &&
            usec_sub(clock_now(CLOCK_MONOTONIC), helper->up_at) >= BACKOFF_RESET_USEC)
                helper->failures = 0;
        helper->failures++;
        arm(helper, reconnect_delay(helper->failures, BACKOFF_MIN_USEC, BACKOFF_MAX_USEC));
        set_state(helper, DATABASE_DOWN, error);
}

static int on_unasked(sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_,
                      void *userdata)
{
        struct error_report error;

        if (!driver_check(&error))
                lose(userdata, &error);
        return 0;
}

static int on_attempt(sd_event_source *source _unused_, uint64_t due _unused_, void *userdata)
{
        struct helper *helper = userdata;
        struct error_report error = {0};
        int fd;

        switch (driver_connect(&helper->settings, &fd, &error)) {
        case DRIVER_CONNECTED:
                if (fd >= 0 &&
                    sd_event_add_io(helper->event, &helper->io, fd, EPOLLIN, on_unasked, helper) < 0) {
                        fail(helper);
                        return 0;
                }
                helper->report.connections++;
                helper->up_at = clock_now(CLOCK_MONOTONIC);
                set_state(helper, DATABASE_CONNECTED, &(struct error_report){0});
                break;
        case DRIVER_FAILED:
                lose(helper, &error);
                break;
        case DRIVER_CONTINUES: /* answers sqmgr before */
                arm(helper, 0);
                break;
        }
        return 0;
}

static int on_row(size_t statement, const struct database_row *row, void *userdata)
{
        struct codec_writer writer = {0};

        if (row->n > DATABASE_COLUMNS_MAX)
                return -E2BIG;
        codec_write_number(&writer, DATABASE_ROW);
        codec_write_number(&writer, statement);
        codec_write_number(&writer, row->n);
        for (size_t i = 0; i < row->n; i++)
                database_value_write(&writer, &row->values[i]);
        return send_message(userdata, &writer);
}

static void send_end(struct helper *helper, const struct database_end *end)
{
        struct codec_writer writer = {0};

        database_end_write(&writer, end);
        if (send_message(helper, &writer) < 0)
                fail(helper);
}

static bool begin(struct helper *helper, struct codec_reader *message)
{
        usec_t timeout = codec_read_number(message, 1, USEC_PER_DAY);
        const char *url = database_value_read(message).text, *probe = database_value_read(message).text;

        if (!url || !probe || message->left > 0 || helper->url)
                return false;
        helper->url = strdup(url);
        helper->probe = strdup(probe);
        helper->settings =
                (struct database_settings){.url = helper->url, .probe = helper->probe, .timeout = timeout};
        if (!helper->url || !helper->probe ||
            sd_event_add_time(helper->event, &helper->attempt, CLOCK_MONOTONIC, 0, 1, on_attempt, helper) < 0)
                return false;
        send_state(helper);
        return true;
}

static void run_batch(struct helper *helper, const struct driver_batch *batch)
{
        struct database_end end = {.result = DATABASE_LOST};
        usec_t begun_at = clock_now(CLOCK_MONOTONIC);

        if (helper->report.state != DATABASE_CONNECTED) {
                error_report_set(&end.error, "connection lost");
                send_end(helper, &end);
                return;
        }
        end.result = driver_run(&helper->settings, batch, &end.error);
        if (end.result != DATABASE_LOST)
                end.rtt_usec = MAX(usec_sub(clock_now(CLOCK_MONOTONIC), begun_at), (usec_t)1);
        send_end(helper, &end);
        if (end.result == DATABASE_LOST)
                lose(helper, &end.error);
}

/* Returns false if the message is invalid. */
static bool run(struct helper *helper, struct codec_reader *message)
{
        struct database_statement statements[DATABASE_STATEMENTS_MAX];
        const char *parameters[DATABASE_STATEMENTS_MAX][DATABASE_PARAMETERS_MAX];
        bool writes = codec_read_number(message, false, true);
        size_t n = codec_read_number(message, 0, DATABASE_STATEMENTS_MAX);

        for (size_t i = 0; i < n; i++) {
                statements[i] = (struct database_statement){
                        .parameters = parameters[i],
                        .n = codec_read_number(message, 0, DATABASE_PARAMETERS_MAX),
                };
                statements[i].sql = database_value_read(message).text;
                for (size_t k = 0; k < statements[i].n; k++)
                        parameters[i][k] = database_value_read(message).text;
                message->wrong |= !statements[i].sql;
        }
        if (message->wrong || message->left > 0 || !helper->url)
                return false;
        run_batch(helper, &(struct driver_batch){.statements = statements,
                                                 .n = n,
                                                 .writes = writes,
                                                 .row = on_row,
                                                 .userdata = helper});
        return true;
}

static void on_message(const uint8_t *bytes, size_t n, void *userdata)
{
        struct helper *helper = userdata;
        struct codec_reader message = {.at = bytes, .left = n};
        bool valid = false;

        switch ((enum database_message)codec_read_number(&message, 0, _DATABASE_MESSAGE_MAX)) {
        case DATABASE_SETTINGS:
                valid = begin(helper, &message);
                break;
        case DATABASE_PING:
                valid = helper->url;
                if (valid)
                        send_state(helper);
                break;
        case DATABASE_BATCH:
                valid = run(helper, &message);
                break;
        default:
                break;
        }
        if (!valid)
                fail(helper);
}

static void on_end(int error, void *userdata)
{
        const struct helper *helper = userdata;

        (void)sd_event_exit(helper->event, error);
}

static bool is_socket(int fd)
{
        int type;
        socklen_t size = sizeof(type);

        return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

/* The address sanitizer reserves terabytes. */
static int limit_memory(void)
{
#ifdef __SANITIZE_ADDRESS__
        return 0;
#else
        struct rlimit limit;

        if (getrlimit(RLIMIT_DATA, &limit) < 0)
                return -errno;
        limit.rlim_max = MIN(limit.rlim_max, MEMORY_MAX_BYTES);
        limit.rlim_cur = MIN(limit.rlim_cur, MEMORY_MAX_BYTES);
        return setrlimit(RLIMIT_DATA, &limit) < 0 ? -errno : 0;
#endif
}

static int run_loop(struct helper *helper)
{
        static const struct message_socket_ops ops = {.on_message = on_message, .on_end = on_end};
        static const struct message_socket_limits limits = {.receive = DATABASE_REQUEST_MAX,
                                                            .send = SEND_MAX};

        int r = sd_event_new(&helper->event);
        if (r >= 0)
                r = message_socket_new(helper->event, STDIN_FILENO, &limits, &ops, helper,
                                       &helper->message_socket);
        return r < 0 ? r : sd_event_loop(helper->event);
}

int main(void)
{
        struct helper helper = {0};

        if (!is_socket(STDIN_FILENO)) {
                fprintf(stderr, "%s: only sqmgr starts this program\n", program_invocation_short_name);
                return EXIT_FAILURE;
        }
        /* Linux before 6.14 names a program that is executed by a descriptor after the descriptor's
         * number. */
        (void)prctl(PR_SET_NAME, program_invocation_short_name);
        /* Libraries would take settings of servers and of name lookups from it. */
        (void)clearenv();
        (void)signal(SIGPIPE, SIG_IGN);
        int r = limit_memory();
        if (r >= 0)
                r = run_loop(&helper);
        sd_event_source_disable_unref(helper.io);
        sd_event_source_disable_unref(helper.attempt);
        message_socket_free(helper.message_socket);
        sd_event_unref(helper.event);
        free(helper.url);
        free(helper.probe);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
