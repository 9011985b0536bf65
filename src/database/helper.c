/* SPDX-License-Identifier: MIT */
/* The helper programs sqmgr-postgresql and sqmgr-sqlite: this file and one driver. sqmgr starts them, for one
 * database each. Standard input is a SOCK_SEQPACKET socket to sqmgr; the helper ends with it. */
#include "base/macro.h"
#include "database/messages.h"
#include "io/message_socket.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Limit of replies that sqmgr has not read yet: the values of a batch, and as much again for their lengths.
 */
#define SEND_MAX (2 * DATABASE_BYTES_MAX)
/* The replies may take three times SEND_MAX / 2 while their buffer grows. The rest is for libraries, and for
 * threads that still wait for a name server, with 8 MiB of stack each. */
#define MEMORY_MAX_BYTES ((rlim_t)256 << 20)

struct helper {
        sd_event *event;
        struct message_socket *message_socket;
        struct database *database; /* NULL: no settings yet */
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
        const struct error_report *error = database_error(helper->database);
        struct codec_writer writer = {0};
        struct database_report report = {
                .state = database_state(helper->database),
                .connections = database_connection_count(helper->database),
        };

        if (error)
                report.error = *error;
        database_report_write(&writer, &report);
        if (send_message(helper, &writer) < 0)
                fail(helper);
}

static void on_state(struct database *database _unused_, enum database_state state _unused_,
                     const struct error_report *error _unused_, void *userdata)
{
        send_state(userdata);
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

static void send_end(struct helper *helper, enum database_result result, const struct error_report *error)
{
        struct codec_writer writer = {0};
        struct database_end end = {.result = result, .rtt_usec = database_rtt_usec(helper->database)};

        if (error)
                end.error = *error;
        database_end_write(&writer, &end);
        if (send_message(helper, &writer) < 0)
                fail(helper);
}

static void on_done(enum database_result result, const struct error_report *error, void *userdata)
{
        struct helper *helper = userdata;

        /* While the database is freed, nobody waits. */
        if (helper->database)
                send_end(helper, result, error);
}

static bool begin(struct helper *helper, struct codec_reader *message)
{
        static const struct database_ops ops = {.state = on_state};
        struct database_settings settings = {.timeout = codec_read_number(message, 1, USEC_PER_DAY)};

        settings.url = database_value_read(message).text;
        settings.probe = database_value_read(message).text;
        if (!settings.url || !settings.probe || message->left > 0 || helper->database ||
            database_new(helper->event, &settings, &ops, helper, &helper->database) < 0)
                return false;
        send_state(helper);
        return true;
}

/* Returns false if the message is invalid. */
static bool run(struct helper *helper, struct codec_reader *message)
{
        static const struct database_batch_ops ops = {.row = on_row, .done = on_done};
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
        if (message->wrong || message->left > 0 || !helper->database)
                return false;
        int r = database_run(helper->database, statements, n, writes, &ops, helper);
        if (r < 0) {
                struct error_report error;

                error_report_set(&error, "%s", r == -ENOMEM ? "out of memory" : "connection lost");
                send_end(helper, DATABASE_LOST, &error);
        }
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
                valid = helper->database;
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
        database_free(TAKE_PTR(helper.database));
        message_socket_free(helper.message_socket);
        sd_event_unref(helper.event);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
