/* SPDX-License-Identifier: MIT */
/* The driver for PostgreSQL, with libpq; see database/database.h.
 * No call of libpq here waits: host names are resolved by io/resolve.h, and everything else is non-blocking.
 * A batch is one flight of messages in pipeline mode: BEGIN, the time limits, the statements, COMMIT, and one
 * synchronization, which the server answers at once. Rows are taken one by one as they arrive, so the bounds
 * hold before a result is complete. A single row, which libpq collects, is bounded by RLIMIT_DATA. */
#include "base/macro.h"
#include "database/database.h"
#include "database/postgresql_url.h"
#include "io/clock.h"
#include "io/resolve.h"
#include <libpq-fe.h>
#include <netdb.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>

#define BACKOFF_MIN_USEC (100 * USEC_PER_MSEC)
#define BACKOFF_MAX_USEC (5 * USEC_PER_SEC)
/* After a connection of this duration, the backoff starts at its minimum again. */
#define BACKOFF_RESET_USEC (10 * USEC_PER_SEC)
/* How often the server may send something between two batches, as notices and changed parameters. */
#define UNASKED_MAX 64

struct batch {
        const struct database_batch_ops *ops;
        void *userdata;
        size_t n_commands; /* of the flight */
        size_t command;    /* the one whose results arrive */
        bool answered;     /* the command has a result */
        bool refused;      /* a command was refused; error says why */
        bool rolling_back; /* the flight is a ROLLBACK */
        size_t rows, bytes;
        struct error_report error;
};

/* Commands of a flight beside its statements. */
enum { COMMAND_BEGIN, COMMAND_LIMITS, COMMANDS_BEFORE, COMMANDS_AROUND = COMMANDS_BEFORE + 1 };

static bool send_command(PGconn *connection, const char *sql, size_t n, const char *const *parameters)
{
        return PQsendQueryParams(connection, sql, (int)n, NULL, parameters, NULL, NULL, 0) == 1;
}

static bool send_limits(PGconn *connection, usec_t timeout)
{
        char statement[24], lock[24];
        const char *const parameters[] = {statement, lock};
        uint64_t msec = timeout / USEC_PER_MSEC;

        snprintf(statement, sizeof(statement), "%llu", (unsigned long long)MAX(msec - msec / 8, 1U));
        snprintf(lock, sizeof(lock), "%llu", (unsigned long long)MAX(msec / 2, 1U));
        return send_command(connection,
                            "SELECT set_config('statement_timeout', $1, true), "
                            "set_config('lock_timeout', $2, true)",
                            ELEMENTSOF(parameters), parameters);
}

/* Queues the flight; PQflush() sends it. A batch that reads sees one state of all tables. timeout: the server
 * ends a statement before this time is over, so that it can say so. batch has ops and userdata, and is
 * otherwise all zeros. Returns false if the connection has failed. */
static bool batch_send(struct batch *batch, PGconn *connection, usec_t timeout,
                       const struct database_statement *statements, size_t n, bool writes)
{
        bool sent = send_command(connection,
                                 writes ? "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
                                        : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
                                 0, NULL) &&
                    send_limits(connection, timeout);

        batch->n_commands = n + COMMANDS_AROUND;
        for (size_t i = 0; sent && i < n; i++)
                sent = send_command(connection, statements[i].sql, statements[i].n, statements[i].parameters);
        return sent && send_command(connection, "COMMIT", 0, NULL) && PQpipelineSync(connection) == 1;
}

/* said: what the server or libpq says; NULL: nothing. Returns error. */
static int fail(struct batch *batch, int error, const char *said, const char *why)
{
        error_report_quote(&batch->error, said, "%s", why);
        return error;
}

static int fail_by_violation(struct batch *batch)
{
        return fail(batch, -EPROTO, NULL, "the server violates the protocol of PostgreSQL");
}

static int take_row(struct batch *batch, const PGresult *result, int row)
{
        static const char too_much[] = "the database sent more rows or bytes than a batch may have";
        struct field values[DATABASE_COLUMNS_MAX];
        int n = PQnfields(result);

        if (n > DATABASE_COLUMNS_MAX)
                return fail(batch, -E2BIG, NULL, too_much);
        for (int i = 0; i < n; i++) {
                bool is_null = PQgetisnull(result, row, i) == 1;

                values[i] = (struct field){.text = is_null ? NULL : PQgetvalue(result, row, i),
                                           .len = is_null ? 0 : (size_t)PQgetlength(result, row, i)};
                batch->bytes += values[i].len;
        }
        if (++batch->rows > DATABASE_ROWS_MAX || batch->bytes > DATABASE_BYTES_MAX)
                return fail(batch, -E2BIG, NULL, too_much);
        if (batch->rolling_back || batch->command < COMMANDS_BEFORE ||
            batch->command + 1 >= batch->n_commands)
                return 0;
        const struct database_row taken = {.values = values, .n = (size_t)n};
        int r = batch->ops->row(batch->command - COMMANDS_BEFORE, &taken, batch->userdata);
        if (!batch->ops)
                return -ECANCELED;
        return r < 0 ? fail(batch, r, NULL, "the rows cannot be used") : 0;
}

static int take_rows(struct batch *batch, const PGresult *result)
{
        int r = 0;

        for (int i = 0; r >= 0 && i < PQntuples(result); i++)
                r = take_row(batch, result, i);
        return r;
}

/* Quotes the code of the error too: codes, unlike messages, are not translated. */
static int take_refusal(struct batch *batch, const PGresult *result)
{
        const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
        char said[QUOTED_MAX];

        if (!code) /* of libpq itself: the connection is gone, or memory is short */
                return fail(batch, -EIO, PQresultErrorMessage(result), "connection lost");
        if (batch->refused)
                return 0;
        snprintf(said, sizeof(said), "%s %s", code, message ?: "");
        batch->refused = true;
        return fail(batch, 0, said, "the database refused a statement");
}

/* A refused statement leaves the transaction open, and skips the COMMIT. */
static int roll_back(struct batch *batch, PGconn *connection)
{
        batch->rolling_back = true;
        batch->n_commands = 1;
        batch->command = 0;
        batch->answered = false;
        return send_command(connection, "ROLLBACK", 0, NULL) && PQpipelineSync(connection) == 1
                       ? 0
                       : fail(batch, -EIO, PQerrorMessage(connection), "connection lost");
}

static int take_synchronization(struct batch *batch, PGconn *connection)
{
        if (batch->command != batch->n_commands)
                return fail_by_violation(batch);
        if (PQtransactionStatus(connection) == PQTRANS_IDLE)
                return 1;
        return batch->refused && !batch->rolling_back ? roll_back(batch, connection)
                                                      : fail_by_violation(batch);
}

/* A transaction that has failed answers COMMIT with ROLLBACK. */
static int take_tag(struct batch *batch, PGresult *result)
{
        bool commits = !batch->rolling_back && batch->command + 1 == batch->n_commands;

        return commits && strcmp(PQcmdStatus(result), "COMMIT") != 0 ? fail_by_violation(batch) : 0;
}

static int take_result(struct batch *batch, PGconn *connection, PGresult *result)
{
        batch->answered = true;
        switch (PQresultStatus(result)) {
        case PGRES_TUPLES_OK:
        case PGRES_SINGLE_TUPLE:
                return take_rows(batch, result);
        case PGRES_COMMAND_OK:
                return take_tag(batch, result);
        case PGRES_FATAL_ERROR:
                return take_refusal(batch, result);
        case PGRES_PIPELINE_ABORTED:
                return batch->refused ? 0 : fail_by_violation(batch);
        case PGRES_PIPELINE_SYNC:
                return take_synchronization(batch, connection);
        default:
                return fail_by_violation(batch);
        }
}

/* NULL follows the results of each command. */
static int take_end_of_command(struct batch *batch, PGconn *connection)
{
        if (!batch->answered || batch->command == batch->n_commands)
                return fail_by_violation(batch);
        batch->answered = false;
        batch->command++;
        /* Rows of the next command come one by one, so the bounds hold before a result is complete. */
        (void)PQsetSingleRowMode(connection);
        return 0;
}

/* Takes the results that have arrived, and queues a ROLLBACK if the refusal of a statement requires one.
 * Calls row(), which may end the batch (ops is NULL then) and close the connection: returns -ECANCELED.
 * Otherwise returns 0 if more results are to come; 1 if the transaction has ended; or -errno, with the error,
 * if the connection is of no use any more. */
static int batch_take(struct batch *batch, PGconn *connection)
{
        int r = 0;

        while (r == 0 && !PQisBusy(connection)) {
                PGresult *result = PQgetResult(connection);

                r = result ? take_result(batch, connection, result) : take_end_of_command(batch, connection);
                PQclear(result);
        }
        return r;
}

enum phase {
        PHASE_WAITING, /* for the next attempt */
        PHASE_RESOLVING,
        PHASE_CONNECTING,
        PHASE_PROBING,
        PHASE_READY,
        PHASE_RUNNING,
        PHASE_FAILED, /* a batch could not be sent: the loop ends it */
};

struct database {
        struct database_shown shown; /* the first member */
        sd_event *event;
        sd_event_source *timer;
        struct postgresql_url url;
        const char *url_error; /* a constant; NULL: the URL is valid */
        char *probe;
        usec_t timeout;

        enum phase phase;
        size_t server; /* of the URL */
        struct resolve *resolve;
        struct resolve_answer answer; /* of the server */
        unsigned next_address;
        struct error_report failure; /* of the last address tried */

        PGconn *connection;
        uint64_t openings; /* shows whether a callback closed or reopened the connection */
        sd_event_source *io;
        unsigned unasked;
        usec_t up_at;
        unsigned failures;  /* consecutive, for the backoff */
        struct batch batch; /* ops NULL: none runs */
        usec_t started_at;  /* of the batch */

        unsigned entered; /* our calls on the stack */
};

static void destroy(struct database *database)
{
        sd_event_source_disable_unref(database->timer);
        sd_event_unref(database->event);
        postgresql_url_clear(&database->url);
        free(database->probe);
        free(database);
}

/* Enclose all calls of callbacks: the object stays until the outermost call has returned. */
static void enter(struct database *database)
{
        database->entered++;
}

static void leave(struct database *database)
{
        /* -fanalyzer: each leave follows an enter, so the object stays until the last leave. */
        if (--database->entered == 0 && database->shown.freed)
                destroy(database);
}

static void arm(struct database *database, usec_t delay)
{
        /* Neither call fails for our own event source. */
        (void)sd_event_source_set_time(database->timer, usec_add(clock_now(CLOCK_MONOTONIC), delay));
        (void)sd_event_source_set_enabled(database->timer, SD_EVENT_ONESHOT);
}

static void disarm(struct database *database)
{
        (void)sd_event_source_set_enabled(database->timer, SD_EVENT_OFF);
}

static void close_connection(struct database *database)
{
        database->openings++;
        database->io = sd_event_source_disable_unref(database->io);
        if (database->connection)
                PQfinish(TAKE_PTR(database->connection));
}

/* Ends the batch in progress. error NULL: no error. */
static void end_batch(struct database *database, enum database_result result,
                      const struct error_report *error)
{
        const struct database_batch_ops *ops = TAKE_PTR(database->batch.ops);

        if (ops)
                ops->done(result, error, database->batch.userdata);
}

/* Closes the connection, and tries again later. */
static void lose(struct database *database, const struct error_report *error)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        if (database->shown.state == DATABASE_CONNECTED && now - database->up_at >= BACKOFF_RESET_USEC)
                database->failures = 0;
        database->failures++;
        database->phase = PHASE_WAITING;
        database->shown.rtt_usec = 0;
        close_connection(database);
        arm(database, reconnect_delay(database->failures, BACKOFF_MIN_USEC, BACKOFF_MAX_USEC));
        bool changed = database_change_state(database, DATABASE_DOWN, error);
        enter(database);
        end_batch(database, DATABASE_LOST, error);
        if (changed)
                database_report_state(database);
        leave(database);
}

/* said: what the server or libpq says; NULL: nothing. */
static void lose_by(struct database *database, const char *said, const char *why)
{
        struct error_report error;

        error_report_quote(&error, said, "%s", why);
        lose(database, &error);
}

static void lose_connection(struct database *database)
{
        const struct error_report error = database->batch.error;

        /* The server may have said before why it ends the connection. */
        if (database->batch.ops && database->batch.refused)
                lose(database, &error);
        else
                lose_by(database, PQerrorMessage(database->connection), "connection lost");
}

/* Returns true if TLS has decoded bytes that libpq has not read: no event of the socket would announce them.
 */
static bool has_decoded_input(PGconn *connection)
{
        SSL *ssl = PQsslStruct(connection, "OpenSSL");

        return ssl && SSL_pending(ssl) > 0;
}

/* Writes what waits to be written. Returns false if the connection has failed. */
static bool flush(struct database *database)
{
        int r = PQflush(database->connection);
        /* The socket can nearly always be written: waiting for that continues at once. */
        bool soon = r > 0 || has_decoded_input(database->connection);

        /* After a failure the next event retries, or the batch times out. */
        if (r >= 0)
                (void)sd_event_source_set_io_events(database->io, soon ? EPOLLIN | EPOLLOUT : EPOLLIN);
        return r >= 0;
}

/* If the batch cannot be sent, the loop ends it: the caller must not be called back. */
static void run_batch(struct database *database, const struct database_statement *statements, size_t n,
                      bool writes)
{
        database->started_at = clock_now(CLOCK_MONOTONIC);
        arm(database, database->timeout);
        if (batch_send(&database->batch, database->connection, database->timeout, statements, n, writes) &&
            flush(database))
                return;
        database->phase = PHASE_FAILED;
        arm(database, 0);
}

static int ignore_row(size_t statement _unused_, const struct database_row *row _unused_,
                      void *userdata _unused_)
{
        return 0;
}

static void on_probed(enum database_result result, const struct error_report *error, void *userdata)
{
        struct database *database = userdata;
        struct error_report refusal;

        if (result == DATABASE_REFUSED) {
                refusal = *error;
                snprintf(refusal.text, sizeof(refusal.text), DATABASE_NO_TABLES);
                lose(database, &refusal);
        } else if (result == DATABASE_DONE) {
                database->shown.connections++;
                database->up_at = clock_now(CLOCK_MONOTONIC);
                if (database_change_state(database, DATABASE_CONNECTED, NULL))
                        database_report_state(database);
        }
}

static void probe(struct database *database)
{
        static const struct database_batch_ops ops = {.row = ignore_row, .done = on_probed};
        const struct database_statement statement = {.sql = database->probe};

        database->phase = PHASE_PROBING;
        database->batch = (struct batch){.ops = &ops, .userdata = database};
        run_batch(database, &statement, 1, false);
}

static void finish_batch(struct database *database)
{
        const struct error_report error = database->batch.error;
        bool refused = database->batch.refused;

        database->phase = PHASE_READY;
        database->unasked = 0;
        database->shown.rtt_usec = MAX(clock_now(CLOCK_MONOTONIC) - database->started_at, 1U);
        disarm(database);
        end_batch(database, refused ? DATABASE_REFUSED : DATABASE_DONE, refused ? &error : NULL);
}

static void take_results(struct database *database)
{
        uint64_t opening = database->openings;
        int r = batch_take(&database->batch, database->connection);
        const struct error_report error = database->batch.error;

        if (database->openings != opening)
                return;
        if (r < 0)
                lose(database, &error);
        else if (r > 0)
                finish_batch(database);
}

static void take_input(struct database *database)
{
        uint64_t opening = database->openings;
        PGnotify *notification;

        if (database->batch.ops)
                take_results(database);
        else if (++database->unasked > UNASKED_MAX)
                lose_by(database, NULL, "the server sends what it was not asked for");
        else
                (void)PQisBusy(database->connection); /* has libpq decode it */
        while (database->openings == opening && (notification = PQnotifies(database->connection)))
                PQfreemem(notification);
        /* libpq has closed the socket by itself, as after a message of an impossible length. */
        if (database->openings == opening && PQstatus(database->connection) == CONNECTION_BAD)
                lose_connection(database);
}

/* Reads a bounded part of what has arrived, so that a flood stops neither other sources nor the timer. */
static void receive(struct database *database)
{
        if (PQconsumeInput(database->connection) == 1)
                take_input(database);
        else
                lose_connection(database);
}

/* Continues the login. */
static void connect_step(struct database *database);
/* Tries the addresses of all servers until a connection is in progress. Each has the whole timeout. */
static void connect_next(struct database *database);

static int on_io(sd_event_source *source _unused_, int fd _unused_, uint32_t revents, void *userdata)
{
        struct database *database = userdata;
        uint64_t opening = database->openings;

        enter(database);
        if (database->phase == PHASE_CONNECTING) {
                connect_step(database);
        } else {
                if (revents & (EPOLLIN | EPOLLHUP | EPOLLERR) || has_decoded_input(database->connection))
                        receive(database);
                if (database->openings == opening && !flush(database))
                        lose_connection(database);
        }
        leave(database);
        return 0;
}

static bool watch(struct database *database, uint32_t events)
{
        return sd_event_add_io(database->event, &database->io, PQsocket(database->connection), events, on_io,
                               database) >= 0;
}

static void connect_fail(struct database *database)
{
        bool needs_password = PQconnectionNeedsPassword(database->connection) == 1;

        error_report_quote(&database->failure, PQerrorMessage(database->connection), "%s",
                           needs_password ? "cannot connect: the server asks for a password, and the URL "
                                            "has none"
                                          : "cannot connect");
        connect_next(database);
}

static void connect_done(struct database *database)
{
        PGconn *connection = database->connection;

        if (PQsetnonblocking(connection, 1) == 0 && PQenterPipelineMode(connection) == 1 &&
            watch(database, EPOLLIN))
                probe(database);
        else
                connect_fail(database);
}

/* The socket may become another one with each step. */
static void connect_step(struct database *database)
{
        bool watched = true;

        database->io = sd_event_source_disable_unref(database->io);
        switch (PQconnectPoll(database->connection)) {
        case PGRES_POLLING_READING:
                watched = watch(database, EPOLLIN);
                break;
        case PGRES_POLLING_WRITING:
                watched = watch(database, EPOLLOUT);
                break;
        case PGRES_POLLING_OK:
                connect_done(database);
                break;
        default:
                watched = false;
                break;
        }
        if (!watched)
                connect_fail(database);
}

static void ignore_notice(void *userdata _unused_, const PGresult *notice _unused_)
{
}

/* Begins with an address of the server; "": its socket. Returns false with the failure if that fails at
 * once. */
static bool connect_begin(struct database *database, const char *address)
{
        const struct postgresql_server *server = &database->url.servers[database->server];
        PGconn *connection = postgresql_connect(&database->url, server, address[0] == '\0' ? NULL : address);

        database->connection = connection;
        if (connection && PQstatus(connection) != CONNECTION_BAD) {
                (void)PQsetNoticeReceiver(connection, ignore_notice, NULL);
                if (watch(database, EPOLLOUT)) {
                        database->phase = PHASE_CONNECTING;
                        arm(database, database->timeout);
                        return true;
                }
        }
        error_report_quote(&database->failure, connection ? PQerrorMessage(connection) : "out of memory",
                           "cannot connect");
        return false;
}

static void on_resolved(const struct resolve_answer *answer, void *userdata)
{
        struct database *database = userdata;

        enter(database);
        database->resolve = resolve_free(database->resolve);
        database->answer = *answer;
        if (answer->error != 0) {
                database->answer.n_addresses = 0;
                error_report_set(&database->failure, "cannot resolve host '%s': %s",
                                 database->url.servers[database->server].name, gai_strerror(answer->error));
        }
        connect_next(database);
        leave(database);
}

/* Sets the addresses of the server. Returns true if they have to be looked up first. */
static bool begin_server(struct database *database)
{
        const struct postgresql_server *server = &database->url.servers[database->server];
        bool is_local = postgresql_server_is_local(server);

        database->next_address = 0;
        database->answer = (struct resolve_answer){.n_addresses = 1};
        if (is_local || server->address || resolve_is_numeric(server->name)) {
                snprintf(database->answer.addresses[0], RESOLVE_ADDRESS_SIZE, "%s",
                         is_local ? "" : server->address ?: server->name);
                return false;
        }
        int r = resolve_start(database->event, server->name, on_resolved, database, &database->resolve);
        if (r < 0) {
                database->answer.n_addresses = 0;
                error_report_set(&database->failure, "cannot resolve host '%s': %s", server->name,
                                 strerror(-r));
                return false;
        }
        database->phase = PHASE_RESOLVING;
        arm(database, database->timeout);
        return true;
}

static void connect_next(struct database *database)
{
        for (;;) {
                close_connection(database);
                if (database->next_address < database->answer.n_addresses) {
                        if (connect_begin(database, database->answer.addresses[database->next_address++]))
                                return;
                        continue;
                }
                if (++database->server >= database->url.n_servers)
                        break;
                if (begin_server(database))
                        return;
        }
        const struct error_report failure = database->failure;
        lose(database, &failure);
}

static void connect_first(struct database *database)
{
        database->server = 0;
        if (!begin_server(database))
                connect_next(database);
}

/* The loop itself may be late, as after a stop of this process: the reply may have arrived. */
static void lose_late(struct database *database, usec_t due)
{
        if (clock_now(CLOCK_MONOTONIC) > usec_add(due, database->timeout / 2))
                arm(database, database->timeout);
        else
                lose_by(database, NULL, "no reply in time");
}

static int on_timer(sd_event_source *source _unused_, uint64_t due, void *userdata)
{
        struct database *database = userdata;
        struct error_report error;

        enter(database);
        switch (database->phase) {
        case PHASE_WAITING:
                error_report_set(&error, "%s", database->url_error ?: "");
                if (!database->url_error)
                        connect_first(database);
                else if (database_change_state(database, DATABASE_DOWN, &error))
                        database_report_state(database);
                break;
        case PHASE_RESOLVING: /* a late answer is used too: a slow name server must not prevent connections */
                error_report_set(&error, "host '%s' was not resolved in time",
                                 database->url.servers[database->server].name);
                if (database_change_state(database, DATABASE_DOWN, &error))
                        database_report_state(database);
                break;
        case PHASE_CONNECTING:
                error_report_set(&database->failure, "cannot connect: no answer in time");
                connect_next(database);
                break;
        case PHASE_PROBING:
        case PHASE_RUNNING:
                lose_late(database, due);
                break;
        case PHASE_FAILED:
                lose_connection(database);
                break;
        case PHASE_READY:
                break;
        }
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
                .shown = {.ops = ops, .userdata = userdata},
                .probe = strdup(settings->probe),
                .timeout = settings->timeout,
        };
        int r = postgresql_url_read(settings->url, &database->url, &database->url_error);
        if (r == -EINVAL)
                r = 0;
        if (r >= 0 && !database->probe)
                r = -ENOMEM;
        if (r >= 0)
                r = sd_event_add_time(event, &database->timer, CLOCK_MONOTONIC, 0, 1, on_timer, database);
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

        if (!database || database->shown.freed)
                return NULL;
        database->shown.freed = true;
        close_connection(database);
        database->resolve = resolve_free(database->resolve);
        disarm(database);
        error_report_set(&error, "connection closed");
        enter(database);
        end_batch(database, DATABASE_LOST, &error);
        leave(database);
        return NULL;
}

int database_run(struct database *database, const struct database_statement *statements, size_t n,
                 bool writes, const struct database_batch_ops *ops, void *userdata)
{
        if (database->shown.state != DATABASE_CONNECTED)
                return -ENOTCONN;
        if (database->phase != PHASE_READY)
                return -EBUSY;
        database->phase = PHASE_RUNNING;
        database->batch = (struct batch){.ops = ops, .userdata = userdata};
        run_batch(database, statements, n, writes);
        return 0;
}
