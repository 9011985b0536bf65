/* SPDX-License-Identifier: MIT */
/* The driver for PostgreSQL, with libpq; see the header.
 *
 * A batch is one flight of messages in pipeline mode: BEGIN, the time limits, the statements, COMMIT, and one
 * synchronization, which the server answers at once. Rows are taken one by one as they arrive, so the bounds
 * hold before a result is complete. A single row, which libpq collects, is bounded by RLIMIT_DATA.
 *
 * Calls of libpq do not wait, so that the time limits hold here: for each address, and for a batch. */
#include "base/parse.h"
#include "database/driver.h"
#include "io/clock.h"
#include "io/resolve.h"
#include <libpq-fe.h>
#include <netdb.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

/* How often the server may send something between two batches, as notices and changed parameters. */
#define UNASKED_MAX 64
#define SERVERS_MAX 16

/* The URL is read as libpq reads it. Parameters of the query that libpq does not know are dropped, as by
 * Rails, whose URLs have `pool=5` and the like. Nothing is read but what the URL names: no password file, no
 * service file, no certificate in the home folder. */

/* A server. All texts are owned. */
struct postgresql_server {
        char *name;    /* a host name, an address, or the folder of the Unix socket; NULL: as libpq has it */
        char *address; /* hostaddr of the URL: replaces the lookup of the name; NULL: none */
        char *port;    /* NULL: as libpq has it */
};

struct postgresql_url {
        char *text;       /* owned: with known parameters only */
        char *user;       /* owned: of this process, for a URL without user; NULL: unknown */
        const char *root; /* file of the authorities that issue certificates; NULL: sslrootcert of the URL */
        bool verifies_name; /* sslmode is verify-full, though the URL does not say so */
        struct postgresql_server servers[SERVERS_MAX];
        size_t n_servers;
};

/* Names no file: below a device there is none. libpq reads the default file of a parameter that is empty. */
#define NO_FILE "/dev/null/none"

/* Files of the system with the authorities that issue certificates: Debian and Alpine; Fedora; SUSE. */
static const char *const roots[] = {
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
};

static bool is_known(const PQconninfoOption *options, const char *name, size_t len)
{
        while (options->keyword &&
               (strncmp(options->keyword, name, len) != 0 || options->keyword[len] != '\0'))
                options++;
        return options->keyword;
}

/* Copies the URL without parameters that libpq would refuse. */
static char *drop_unknown(const char *text, const PQconninfoOption *options)
{
        size_t used = strcspn(text, "?");
        char *url = malloc(strlen(text) + 1);
        char separator = '?';

        if (!url)
                return NULL;
        memcpy(url, text, used);
        for (const char *at = text + used; *at != '\0';) {
                size_t len = strcspn(++at, "&");
                size_t name_len = strcspn(at, "=&");

                if (is_known(options, at, name_len) || (len == 8 && strncmp(at, "ssl=true", len) == 0)) {
                        url[used++] = separator;
                        memcpy(url + used, at, len);
                        used += len;
                        separator = '&';
                }
                at += len;
        }
        url[used] = '\0';
        return url;
}

static const char *value_of(const PQconninfoOption *options, const char *name)
{
        while (options->keyword && strcmp(options->keyword, name) != 0)
                options++;
        return options->val && options->val[0] != '\0' ? options->val : NULL;
}

static size_t count(const char *list)
{
        size_t n = 1;

        for (; *list != '\0'; list++)
                n += *list == ',';
        return n;
}

/* Sets *ret to entry i of a list; a list of one entry is for all. NULL: the entry or the list is empty. */
static int take_entry(const char *list, size_t i, bool one_for_all, char **ret)
{
        if (!list)
                return 0;
        for (size_t n = one_for_all && count(list) == 1 ? 0 : i; n > 0; n--) {
                list += strcspn(list, ",");
                list += *list == ',';
        }
        size_t len = strcspn(list, ",");
        if (len > 0)
                *ret = strndup(list, len);
        return len > 0 && !*ret ? -ENOMEM : 0;
}

static int take_servers(const PQconninfoOption *options, struct postgresql_url *url, const char **why)
{
        const char *hosts = value_of(options, "host"), *addresses = value_of(options, "hostaddr");
        const char *ports = value_of(options, "port");
        size_t n = count(addresses ?: hosts ?: "");
        int r = 0;

        if (n > SERVERS_MAX)
                return parse_refuse(why, "the URL names too many servers");
        if ((hosts && count(hosts) != n) || (ports && count(ports) != 1 && count(ports) != n))
                return parse_refuse(why,
                                    "the URL has lists of hosts, addresses and ports that differ in length");
        for (url->n_servers = 0; r == 0 && url->n_servers < n; url->n_servers++) {
                struct postgresql_server *server = &url->servers[url->n_servers];

                r = take_entry(hosts, url->n_servers, false, &server->name);
                if (r == 0)
                        r = take_entry(addresses, url->n_servers, false, &server->address);
                if (r == 0)
                        r = take_entry(ports, url->n_servers, true, &server->port);
                if (r == 0 && n > 1 && !server->name && !server->address)
                        r = parse_refuse(why, "the URL has a list of hosts with an empty one");
        }
        return r;
}

/* libpq before 16 does not know `sslrootcert=system`, and has no default below /etc for the modes that
 * verify. The other modes verify too if a file is given, so they get none. */
static void take_root(const PQconninfoOption *options, struct postgresql_url *url)
{
        const char *mode = value_of(options, "sslmode"), *root = value_of(options, "sslrootcert");
        bool is_system = root && strcmp(root, "system") == 0;

        if (root && !is_system)
                return;
        url->root = NO_FILE;
        url->verifies_name = is_system && !mode;
        if (is_system || (mode && strncmp(mode, "verify-", 7) == 0))
                for (size_t i = ELEMENTSOF(roots); i-- > 0;)
                        if (access(roots[i], R_OK) == 0)
                                url->root = roots[i];
}

static int take_user(const PQconninfoOption *options, struct postgresql_url *url)
{
        const struct passwd *user = value_of(options, "user") ? NULL : getpwuid(geteuid());

        if (user)
                url->user = strdup(user->pw_name);
        return user && !url->user ? -ENOMEM : 0;
}

static int take(const PQconninfoOption *options, struct postgresql_url *url, const char **why)
{
        if (value_of(options, "service"))
                return parse_refuse(why, "the URL names a service of a file, which is not read");
        int r = take_servers(options, url, why);
        if (r == 0)
                r = take_user(options, url);
        take_root(options, url);
        return r;
}

static void clear_url(struct postgresql_url *url)
{
        if (url->text)
                explicit_bzero(url->text, strlen(url->text));
        free(url->text);
        free(url->user);
        FOREACH_ELEMENT(server, url->servers) {
                free(server->name);
                free(server->address);
                free(server->port);
        }
        *url = (struct postgresql_url){0};
}

/* Returns 0 with *ret, -EINVAL with a constant sentence in *why, or -ENOMEM. */
static int read_url(const char *text, struct postgresql_url *ret, const char **why)
{
        PQconninfoOption *all = PQconninfoParse("postgresql://", NULL), *options = NULL;
        struct postgresql_url url = {.text = all ? drop_unknown(text, all) : NULL};
        char *message = NULL;
        int r = -ENOMEM;

        /* Not quoted: the message may contain the password. */
        if (url.text && !(options = PQconninfoParse(url.text, &message)) && message)
                r = parse_refuse(why, "libpq cannot read the URL. Check the parameters behind '?'");
        if (options)
                r = take(options, &url, why);
        PQfreemem(message);
        PQconninfoFree(options);
        PQconninfoFree(all);
        if (r < 0)
                clear_url(&url);
        else
                *ret = url;
        return r;
}

static bool is_local(const struct postgresql_server *server)
{
        return !server->address && (!server->name || server->name[0] == '/' || server->name[0] == '@');
}

/* Begins a connection to a server; address: numeric; NULL: the server is a Unix socket, or has a numeric
 * name. Returns NULL if memory is short. The result may be in the state CONNECTION_BAD. */
static PGconn *begin_connection(const struct postgresql_url *url, const struct postgresql_server *server,
                                const char *address)
{
        /* The last value of a parameter counts, and an empty one is skipped: defaults stand before the URL,
         * and what is not up to the URL behind it. */
        const struct {
                const char *name, *value;
        } parameters[] = {
                {"user", url->user},
                {"passfile", NO_FILE},
                {"require_auth", PQlibVersion() >= 160000 ? "!gss,!sspi" : NULL},
                {"sslcert", NO_FILE},
                {"sslkey", NO_FILE},
                {"sslcrl", NO_FILE},
                {"fallback_application_name", "sqmgr"},
                /* A server that is gone is noticed within a minute, even between batches. */
                {"keepalives_idle", "30"},
                {"keepalives_interval", "10"},
                {"keepalives_count", "3"},
                {"dbname", url->text},
                {"host", server->name},
                {"hostaddr", address},
                {"port", server->port},
                {"sslrootcert", url->root},
                {"sslmode", url->verifies_name ? "verify-full" : NULL},
                {"client_encoding", "UTF8"},
                /* Kerberos reads files and asks servers while the loop waits. */
                {"gssencmode", "disable"},
        };
        const char *names[ELEMENTSOF(parameters) + 1] = {NULL}, *values[ELEMENTSOF(parameters) + 1] = {NULL};

        for (size_t i = 0; i < ELEMENTSOF(parameters); i++) {
                names[i] = parameters[i].name;
                values[i] = parameters[i].value ?: "";
        }
        return PQconnectStartParams(names, values, 1);
}

/* The only connection of the program, and where its servers are. */
static struct postgresql_url url;    /* without servers: not read yet */
static struct resolve_answer answer; /* of the server whose addresses are tried */
static PGconn *connection;           /* NULL: none */
static unsigned unasked;             /* how often the server has sent something since the last batch */

struct batch {
        const struct driver_batch *asked;
        size_t n_commands; /* of the flight */
        size_t command;    /* the one whose results arrive */
        bool answered;     /* the command has a result */
        bool refused;      /* a command was refused; error says why */
        bool rolling_back; /* the flight is a ROLLBACK */
        size_t rows, bytes;
        struct error_report *error;
};

/* Commands of a flight beside its statements. */
enum { COMMAND_BEGIN, COMMAND_LIMITS, COMMANDS_BEFORE, COMMANDS_AROUND = COMMANDS_BEFORE + 1 };

static bool send_command(const char *sql, size_t n, const char *const *parameters)
{
        return PQsendQueryParams(connection, sql, (int)n, NULL, parameters, NULL, NULL, 0) == 1;
}

static bool send_limits(usec_t timeout)
{
        char statement[24], lock[24];
        const char *const parameters[] = {statement, lock};
        uint64_t msec = timeout / USEC_PER_MSEC;

        snprintf(statement, sizeof(statement), "%llu", (unsigned long long)MAX(msec - msec / 8, 1U));
        snprintf(lock, sizeof(lock), "%llu", (unsigned long long)MAX(msec / 2, 1U));
        return send_command("SELECT set_config('statement_timeout', $1, true), "
                            "set_config('lock_timeout', $2, true)",
                            ELEMENTSOF(parameters), parameters);
}

/* Queues the flight; PQflush() sends it. A batch that reads sees one state of all tables. timeout: the server
 * ends a statement before this time is over, so that it can say so. Returns false if the connection has
 * failed. */
static bool send_batch(struct batch *batch, usec_t timeout)
{
        const struct driver_batch *asked = batch->asked;
        bool sent = send_command(asked->writes ? "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
                                               : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
                                 0, NULL) &&
                    send_limits(timeout);

        batch->n_commands = asked->n + COMMANDS_AROUND;
        for (size_t i = 0; sent && i < asked->n; i++)
                sent = send_command(asked->statements[i].sql, asked->statements[i].n,
                                    asked->statements[i].parameters);
        return sent && send_command("COMMIT", 0, NULL) && PQpipelineSync(connection) == 1;
}

/* said: what the server or libpq says; NULL: nothing. Returns error. */
static int fail(struct batch *batch, int error, const char *said, const char *why)
{
        error_report_quote(batch->error, said, "%s", why);
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
        int r = batch->asked->row
                        ? batch->asked->row(batch->command - COMMANDS_BEFORE, &taken, batch->asked->userdata)
                        : 0;
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
static int roll_back(struct batch *batch)
{
        batch->rolling_back = true;
        batch->n_commands = 1;
        batch->command = 0;
        batch->answered = false;
        return send_command("ROLLBACK", 0, NULL) && PQpipelineSync(connection) == 1
                       ? 0
                       : fail(batch, -EIO, PQerrorMessage(connection), "connection lost");
}

static int take_synchronization(struct batch *batch)
{
        if (batch->command != batch->n_commands)
                return fail_by_violation(batch);
        if (PQtransactionStatus(connection) == PQTRANS_IDLE)
                return 1;
        return batch->refused && !batch->rolling_back ? roll_back(batch) : fail_by_violation(batch);
}

/* A transaction that has failed answers COMMIT with ROLLBACK. */
static int take_tag(struct batch *batch, PGresult *result)
{
        bool commits = !batch->rolling_back && batch->command + 1 == batch->n_commands;

        return commits && strcmp(PQcmdStatus(result), "COMMIT") != 0 ? fail_by_violation(batch) : 0;
}

static int take_result(struct batch *batch, PGresult *result)
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
                return take_synchronization(batch);
        default:
                return fail_by_violation(batch);
        }
}

/* NULL follows the results of each command. */
static int take_end_of_command(struct batch *batch)
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
 * Returns 0 if more results are to come; 1 if the transaction has ended; or -errno, with the error, if the
 * connection is of no use any more. */
static int take_results(struct batch *batch)
{
        int r = 0;

        while (r == 0 && !PQisBusy(connection)) {
                PGresult *result = PQgetResult(connection);

                r = result ? take_result(batch, result) : take_end_of_command(batch);
                PQclear(result);
        }
        return r;
}

/* Returns true if TLS has decoded bytes that libpq has not read: no event of the socket would announce them.
 */
static bool has_decoded_input(void)
{
        SSL *ssl = PQsslStruct(connection, "OpenSSL");

        return ssl && SSL_pending(ssl) > 0;
}

/* Waits for these events of the connection until the deadline. The helper ends if sqmgr does meanwhile. */
static void await(short events, usec_t deadline)
{
        struct pollfd fds[] = {{.fd = PQsocket(connection), .events = events}, {.fd = STDIN_FILENO}};
        usec_t left = has_decoded_input() ? 0 : usec_sub(deadline, clock_now(CLOCK_MONOTONIC));

        (void)poll(fds, ELEMENTSOF(fds),
                   (int)MIN((left + USEC_PER_MSEC - 1) / USEC_PER_MSEC, (usec_t)INT_MAX));
        if (fds[1].revents != 0)
                exit(EXIT_SUCCESS);
}

static void drop_notifications(void)
{
        PGnotify *notification;

        while ((notification = PQnotifies(connection)))
                PQfreemem(notification);
}

/* The server may have said before why it ends the connection. */
static int fail_by_connection(struct batch *batch)
{
        return batch->refused ? -EIO : fail(batch, -EIO, PQerrorMessage(connection), "connection lost");
}

/* Returns as take_results(). */
static int run_batch(struct batch *batch, usec_t timeout)
{
        usec_t deadline = usec_add(clock_now(CLOCK_MONOTONIC), timeout);
        bool late = false;
        int r;

        if (!send_batch(batch, timeout))
                return fail_by_connection(batch);
        while ((r = take_results(batch)) == 0) {
                drop_notifications();
                /* libpq has closed the socket by itself, as after a message of an impossible length. */
                int unsent = PQstatus(connection) == CONNECTION_BAD ? -1 : PQflush(connection);

                if (unsent < 0)
                        return fail_by_connection(batch);
                if (late)
                        return fail(batch, -ETIME, NULL, "no reply in time");
                /* Input of before the deadline counts, also if this process was stopped meanwhile. */
                late = clock_now(CLOCK_MONOTONIC) >= deadline;
                await(unsent > 0 ? POLLIN | POLLOUT : POLLIN, deadline);
                if (PQconsumeInput(connection) != 1)
                        return fail_by_connection(batch);
        }
        return r;
}

enum database_result driver_run(const struct database_settings *settings, const struct driver_batch *asked,
                                struct error_report *error)
{
        struct batch batch = {.asked = asked, .error = error};
        int r = run_batch(&batch, settings->timeout);

        unasked = 0;
        return r < 0 ? DATABASE_LOST : batch.refused ? DATABASE_REFUSED : DATABASE_DONE;
}

bool driver_check(struct error_report *error)
{
        struct batch none = {.error = error};

        do {
                if (++unasked > UNASKED_MAX) {
                        error_report_set(error, "the server sends what it was not asked for");
                        return false;
                }
                bool received = PQconsumeInput(connection) == 1;

                (void)PQisBusy(connection); /* has libpq decode it */
                drop_notifications();
                if (!received || PQstatus(connection) == CONNECTION_BAD) {
                        (void)fail_by_connection(&none);
                        return false;
                }
        } while (has_decoded_input());
        return true;
}

void driver_close(void)
{
        if (connection)
                PQfinish(TAKE_PTR(connection));
}

static void ignore_notice(void *userdata _unused_, const PGresult *notice _unused_)
{
}

/* Connects to an address of the server; "": its socket. */
static bool connect_address(const struct postgresql_server *server, const char *address, usec_t timeout,
                            struct error_report *error)
{
        usec_t deadline = usec_add(clock_now(CLOCK_MONOTONIC), timeout);
        PostgresPollingStatusType polled = PGRES_POLLING_WRITING;

        connection = begin_connection(&url, server, address[0] == '\0' ? NULL : address);
        if (!connection) {
                error_report_set(error, "cannot connect: out of memory");
                return false;
        }
        (void)PQsetNoticeReceiver(connection, ignore_notice, NULL);
        if (PQstatus(connection) == CONNECTION_BAD)
                polled = PGRES_POLLING_FAILED;
        while (polled == PGRES_POLLING_READING || polled == PGRES_POLLING_WRITING) {
                await(polled == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline);
                if (clock_now(CLOCK_MONOTONIC) >= deadline) {
                        error_report_set(error, "cannot connect: no answer in time");
                        return false;
                }
                polled = PQconnectPoll(connection);
        }
        if (polled == PGRES_POLLING_OK && PQsetnonblocking(connection, 1) == 0 &&
            PQenterPipelineMode(connection) == 1)
                return true;
        error_report_quote(error, PQerrorMessage(connection), "%s",
                           PQconnectionNeedsPassword(connection) == 1
                                   ? "cannot connect: the server asks for a password, and the URL has none"
                                   : "cannot connect");
        return false;
}

/* Sets the addresses of a server. */
static void look_up(const struct postgresql_server *server, struct error_report *error)
{
        answer = (struct resolve_answer){.n_addresses = 1};
        if (is_local(server) || server->address || resolve_is_numeric(server->name)) {
                snprintf(answer.addresses[0], RESOLVE_ADDRESS_SIZE, "%s",
                         is_local(server) ? "" : server->address ?: server->name);
                return;
        }
        resolve_and_wait(server->name, &answer);
        if (answer.error != 0)
                error_report_set(error, "cannot resolve host '%s': %s", server->name,
                                 gai_strerror(answer.error));
}

static enum driver_outcome probe(const struct database_settings *settings, struct error_report *error)
{
        const struct database_statement statement = {.sql = settings->probe};
        const struct driver_batch batch = {.statements = &statement, .n = 1};
        enum database_result result = driver_run(settings, &batch, error);

        if (result == DATABASE_REFUSED)
                snprintf(error->text, sizeof(error->text), DRIVER_NO_TABLES);
        return result == DATABASE_DONE ? DRIVER_CONNECTED : DRIVER_FAILED;
}

enum driver_outcome driver_connect(const struct database_settings *settings, int *ret_fd,
                                   struct error_report *error)
{
        static size_t next_server, next_address;
        const char *why = "out of memory";

        if (url.n_servers == 0 && read_url(settings->url, &url, &why) < 0) {
                error_report_set(error, "%s", why);
                return DRIVER_FAILED;
        }
        if (next_address == answer.n_addresses) {
                look_up(&url.servers[next_server++], error);
                next_address = 0;
        }
        bool connected = next_address < answer.n_addresses &&
                         connect_address(&url.servers[next_server - 1], answer.addresses[next_address++],
                                         settings->timeout, error);
        if (!connected)
                driver_close();
        if (!connected && (next_address < answer.n_addresses || next_server < url.n_servers))
                return DRIVER_CONTINUES;
        /* The next attempt begins with the first server. */
        next_server = next_address = answer.n_addresses = 0;
        *ret_fd = PQsocket(connection);
        return connected ? probe(settings, error) : DRIVER_FAILED;
}
