/* SPDX-License-Identifier: MIT */
/* Is a server over TLS only taken for what its certificate proves, and does none hold up the loop? Run
 * against a real Redis, and against servers that misbehave. */
/* promises: P5, P10 */
#include "redis/redis.h"
#include "redis/tls.h"
#include "redis_server.h"
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

struct pair {
        X509 *certificate;
        EVP_PKEY *key;
};

static struct pair ca, server;
static struct redis_settings settings;
static struct redis *redis;
static char url[64], last_error[512];
static enum reader_state last_state;
static unsigned n_replies, n_failures;
static int listener = -1, port;

static char *path_of(const char *name)
{
        static char paths[8][80];
        static unsigned at;
        char *path = paths[at++ % ELEMENTSOF(paths)];

        snprintf(path, sizeof(paths[0]), "%s/%s", server_directory, name);
        return path;
}

static void add_extension(X509 *certificate, int nid, const char *value)
{
        X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

        ck_assert_ptr_nonnull(extension);
        ck_assert_int_eq(X509_add_ext(certificate, extension, -1), 1);
        X509_EXTENSION_free(extension);
}

/* issuer NULL: an authority, which signs itself. names: subjectAltName. The validity is in seconds from now.
 */
static struct pair make_pair(const char *name, const struct pair *issuer, const char *names, long from,
                             long until)
{
        struct pair pair = {.certificate = X509_new(), .key = EVP_EC_gen("P-256")};
        X509_NAME *subject = X509_get_subject_name(pair.certificate);

        ck_assert_ptr_nonnull(pair.key);
        X509_set_version(pair.certificate, X509_VERSION_3);
        ASN1_INTEGER_set(X509_get_serialNumber(pair.certificate), issuer ? 2 : 1);
        X509_gmtime_adj(X509_getm_notBefore(pair.certificate), from);
        X509_gmtime_adj(X509_getm_notAfter(pair.certificate), until);
        X509_set_pubkey(pair.certificate, pair.key);
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
        X509_set_issuer_name(pair.certificate,
                             X509_get_subject_name(issuer ? issuer->certificate : pair.certificate));
        if (!issuer)
                add_extension(pair.certificate, NID_basic_constraints, "critical,CA:TRUE");
        if (names)
                add_extension(pair.certificate, NID_subject_alt_name, names);
        ck_assert_int_gt(X509_sign(pair.certificate, issuer ? issuer->key : pair.key, EVP_sha256()), 0);
        return pair;
}

static void free_pair(struct pair *pair)
{
        X509_free(pair->certificate);
        EVP_PKEY_free(pair->key);
        *pair = (struct pair){0};
}

/* Writes NAME.crt and NAME.key. */
static void write_pair(const struct pair *pair, const char *name, const char *password)
{
        char file_name[32];

        snprintf(file_name, sizeof(file_name), "%s.crt", name);
        FILE *file = fopen(path_of(file_name), "w");
        ck_assert_ptr_nonnull(file);
        ck_assert_int_eq(PEM_write_X509(file, pair->certificate), 1);
        fclose(file);
        snprintf(file_name, sizeof(file_name), "%s.key", name);
        file = fopen(path_of(file_name), "w");
        ck_assert_ptr_nonnull(file);
        ck_assert_int_eq(PEM_write_PrivateKey(file, pair->key, password ? EVP_aes_128_cbc() : NULL,
                                              (const unsigned char *)password,
                                              password ? (int)strlen(password) : 0, NULL, NULL),
                         1);
        fclose(file);
}

static void make_server_pair(const char *names, long from, long until)
{
        free_pair(&server);
        server = make_pair("server", &ca, names, from, until);
        write_pair(&server, "server", NULL);
}

static void setup(void)
{
        loop_start();
        signal(SIGPIPE, SIG_DFL); /* nothing here may raise it */
        ca = make_pair("ca", NULL, NULL, -86400, 86400);
        write_pair(&ca, "ca", NULL);
        make_server_pair("IP:127.0.0.1,DNS:localhost", -86400, 86400);
        settings = (struct redis_settings){
                .url = url,
                .tls_ca_file = path_of("ca.crt"),
                .timeout = SERVER_PATIENCE,
        };
        last_state = READER_STATE_CONNECTING;
        n_replies = n_failures = 0;
}

static void teardown(void)
{
        redis = redis_free(redis);
        listener = close_fd(listener);
        free_pair(&ca);
        free_pair(&server);
        loop_end();
        server_directory_empty();
}

static void on_state(struct redis *from _unused_, enum reader_state state, const struct error_report *error,
                     void *userdata _unused_)
{
        last_state = state;
        snprintf(last_error, sizeof(last_error), "%s", error ? error->text : "");
}

static void on_reply(struct redis *from _unused_, const struct redisReply *reply, void *userdata)
{
        if (!reply) {
                n_failures++;
                return;
        }
        n_replies++;
        if (userdata) {
                ck_assert_int_eq(reply->type, REDIS_REPLY_STRING);
                ck_assert_uint_eq(reply->len, *(const size_t *)userdata);
        }
}

static bool is_up(void)
{
        return last_state == READER_STATE_CONNECTED;
}

static bool is_down(void)
{
        return last_state == READER_STATE_DOWN || last_state == READER_STATE_SLOW;
}

static void start(const char *host)
{
        snprintf(url, sizeof(url), "rediss://%s:%d", host, port);
        ck_assert_int_eq(redis_new(event, &settings, NULL, on_state, NULL, &redis), 0);
}

/* A Redis with TLS. Another process may take the free port before it does. */
static void start_tls_redis(const char *auth_clients)
{
        for (;;) {
                char text[16];

                port = free_port();
                snprintf(text, sizeof(text), "%d", port);
                server_pid = unit_fork_bound();
                if (server_pid == 0) {
                        if (!freopen("/dev/null", "w", stdout))
                                _exit(1);
                        execlp("redis-server", "redis-server", "--port", "0", "--tls-port", text, "--bind",
                               "127.0.0.1", "--tls-cert-file", path_of("server.crt"), "--tls-key-file",
                               path_of("server.key"), "--tls-ca-cert-file", path_of("ca.crt"),
                               "--tls-auth-clients", auth_clients, "--unixsocket", server_socket, "--dir",
                               server_directory, "--save", "", (char *)NULL);
                        _exit(127);
                }
                while (waitpid(server_pid, NULL, WNOHANG) == 0) {
                        redisReply *reply = server_ask("PING");

                        if (reply) {
                                freeReplyObject(reply);
                                return;
                        }
                        (void)usleep(10000);
                }
        }
}

static void listen_on_port(void)
{
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof(address);

        listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, length), 0);
        ck_assert_int_eq(listen(listener, 16), 0);
        ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &length), 0);
        port = ntohs(address.sin_port);
}

static int ask(void)
{
        static const char *const argv[] = {"PING"};

        return redis_command(redis, on_reply, NULL, 1, argv, NULL);
}

#define DAY 86400L

static const struct {
        const char *names, *host;
        long from, until;
        const char *error; /* part of it; NULL: none */
} certificates[] = {
        {"IP:127.0.0.1", "127.0.0.1", -DAY, DAY, NULL},
        {"DNS:localhost", "localhost", -DAY, DAY, NULL},
        {"DNS:elsewhere,IP:127.0.0.2", "127.0.0.1", -DAY, DAY, "rejected: IP address mismatch"},
        {"DNS:127.0.0.1", "127.0.0.1", -DAY, DAY, "rejected: IP address mismatch"},
        {"DNS:elsewhere,IP:127.0.0.1", "localhost", -DAY, DAY, "rejected: hostname mismatch"},
        {NULL, "127.0.0.1", -DAY, DAY, "rejected: IP address mismatch"},
        {"IP:127.0.0.1", "127.0.0.1", -2 * DAY, -DAY, "rejected: certificate has expired"},
        {"IP:127.0.0.1", "127.0.0.1", DAY, 2 * DAY, "rejected: certificate is not yet valid"},
};

TEST_LOOP(a_certificate_must_be_of_the_server_and_valid, ELEMENTSOF(certificates))
{
        make_server_pair(certificates[_i].names, certificates[_i].from, certificates[_i].until);
        start_tls_redis("no");
        start(certificates[_i].host);
        if (!certificates[_i].error) {
                run_until(is_up());
                ck_assert_int_eq(ask(), 0);
                run_until(n_replies == 1);
                return;
        }
        run_until(is_down());
        ck_assert_msg(strstr(last_error, certificates[_i].error), "%s", last_error);
        ck_assert_ptr_nonnull(strstr(last_error, "connection lost: server certificate rejected: "));
}

TEST_LOOP(any_certificate_will_do_without_checks, ELEMENTSOF(certificates))
{
        struct pair other = make_pair("ca", NULL, NULL, -DAY, DAY);

        settings.tls_unverified = true;
        make_server_pair(certificates[_i].names, certificates[_i].from, certificates[_i].until);
        write_pair(&other, "other", NULL);
        settings.tls_ca_file = path_of("other.crt");
        start_tls_redis("no");
        start(certificates[_i].host);
        run_until(is_up());
        free_pair(&other);
}

/* An authority of the same name, and the authorities of the machine: none has signed the certificate. */
TEST_LOOP(a_certificate_of_another_authority_is_refused, 2)
{
        struct pair other = make_pair("ca", NULL, NULL, -DAY, DAY);

        write_pair(&other, "other", NULL);
        settings.tls_ca_file = _i == 0 ? path_of("other.crt") : NULL;
        start_tls_redis("no");
        start("127.0.0.1");
        run_until(is_down());
        ck_assert_msg(strstr(last_error, "server certificate rejected: "), "%s", last_error);
        free_pair(&other);
}

TEST(a_self_signed_certificate_can_be_its_own_authority)
{
        free_pair(&server);
        server = make_pair("server", NULL, "IP:127.0.0.1", -DAY, DAY);
        write_pair(&server, "server", NULL);
        settings.tls_ca_file = path_of("server.crt");
        start_tls_redis("no");
        start("127.0.0.1");
        run_until(is_up());
}

TEST_LOOP(proves_its_own_identity, 2)
{
        struct pair client = make_pair("client", &ca, NULL, -DAY, DAY);

        write_pair(&client, "client", NULL);
        if (_i == 0) {
                settings.tls_cert_file = path_of("client.crt");
                settings.tls_key_file = path_of("client.key");
        }
        start_tls_redis("yes");
        start("127.0.0.1");
        run_until(_i == 0 ? is_up() : is_down());
        if (_i == 1)
                ck_assert_msg(strstr(last_error, "certificate required"), "%s", last_error);
        free_pair(&client);
}

/* OpenSSL by itself would ask at the terminal. */
TEST(an_encrypted_key_is_refused)
{
        struct pair client = make_pair("client", &ca, NULL, -DAY, DAY);
        struct settings_tls_refusal refusal = {.file = _SETTINGS_TLS_MAX};
        struct tls *tls = NULL;

        write_pair(&client, "client", "secret");
        settings.tls_cert_file = path_of("client.crt");
        settings.tls_key_file = path_of("client.key");
        ck_assert_int_eq(tls_new(&settings, &tls, &refusal), -EINVAL);
        ck_assert_ptr_null(tls);
        ck_assert_int_eq(refusal.file, SETTINGS_TLS_KEY);
        free_pair(&client);
}

/* More than a socket takes, with TLS and without, and as much in return. */
TEST_LOOP(sends_and_receives_more_than_a_socket_holds, 2)
{
        static char value[20 * 1024 * 1024];
        const char *const set[] = {"SET", "big", value}, *const get[] = {"GET", "big"};
        const size_t lengths[] = {3, 3, sizeof(value)}, length = sizeof(value);

        memset(value, 'x', sizeof(value));
        start_tls_redis("no");
        if (_i == 0) {
                start("127.0.0.1");
        } else {
                settings.url = server_url;
                ck_assert_int_eq(redis_new(event, &settings, NULL, on_state, NULL, &redis), 0);
        }
        run_until(is_up());
        /* The server reads nothing at first. */
        ck_assert_int_eq(kill(server_pid, SIGSTOP), 0);
        ck_assert_int_eq(redis_command(redis, on_reply, NULL, 3, set, lengths), 0);
        ck_assert_int_eq(redis_command(redis, on_reply, (void *)&length, 2, get, NULL), 0);
        for (unsigned i = 0; i < 50; i++)
                ck_assert_int_ge(sd_event_run(event, 0), 0);
        ck_assert_int_eq(kill(server_pid, SIGCONT), 0);
        run_until(n_replies == 2);
        ck_assert_uint_eq(n_failures, 0);
}

/* Passes on a byte at a time, both ways. */
static int on_bytes(sd_event_source *source _unused_, int fd, uint32_t revents _unused_, void *userdata)
{
        char byte;

        if (recv(fd, &byte, 1, MSG_DONTWAIT) == 1)
                (void)send(*(const int *)userdata, &byte, 1, MSG_NOSIGNAL);
        return 0;
}

TEST(one_byte_at_a_time_is_enough)
{
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        sd_event_source *sources[2];

        start_tls_redis("no");
        address.sin_port = htons((uint16_t)port);
        listen_on_port();
        start("127.0.0.1");
        ck_assert_int_ge(sd_event_run(event, USEC_PER_SEC), 0);
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        int behind = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(connect(behind, (struct sockaddr *)&address, sizeof(address)), 0);
        ck_assert_int_ge(sd_event_add_io(event, &sources[0], client, EPOLLIN, on_bytes, &behind), 0);
        ck_assert_int_ge(sd_event_add_io(event, &sources[1], behind, EPOLLIN, on_bytes, &client), 0);
        run_until(is_up());
        ck_assert_int_eq(ask(), 0);
        run_until(n_replies == 1);
        for (size_t i = 0; i < ELEMENTSOF(sources); i++)
                sd_event_source_disable_unref(sources[i]);
        close_fd(client);
        close_fd(behind);
}

/* The bytes that a server sends instead of a handshake before it hangs up. */
static const struct {
        const char *bytes, *error;
} handshakes[] = {
        {"", "connection lost: "},
        {"-ERR unknown command\r\n", "connection lost: TLS: wrong version number"},
        {"\x16\x03\x03\x40\x00\x02", "connection lost: "},
        {"\x15\x03\x03\x00\x02\x02\x28", "connection lost: TLS: "},
        {"\x16\x03\x03\x00\x04\x02\x00\x00\x00", "connection lost: TLS: "},
};
static const size_t handshake_lengths[] = {0, 22, 6, 7, 9};

TEST_LOOP(a_handshake_that_ends_or_is_garbage_ends_the_connection, ELEMENTSOF(handshakes))
{
        char hello[4096];

        listen_on_port();
        start("127.0.0.1");
        ck_assert_int_ge(sd_event_run(event, USEC_PER_SEC), 0);
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        run_until(recv(client, hello, sizeof(hello), MSG_DONTWAIT) > 0);
        ck_assert_int_eq(send(client, handshakes[_i].bytes, handshake_lengths[_i], MSG_NOSIGNAL),
                         (ssize_t)handshake_lengths[_i]);
        (void)shutdown(client, SHUT_WR);
        run_until(is_down());
        ck_assert_msg(strncmp(last_error, handshakes[_i].error, strlen(handshakes[_i].error)) == 0, "%s",
                      last_error);
        close_fd(client);
}

TEST(a_handshake_that_never_ends_is_given_up)
{
        listen_on_port();
        settings.timeout = 300 * USEC_PER_MSEC;
        start("127.0.0.1");
        run_until(is_down());
        ck_assert_str_eq(last_error, "no reply in time. Check that the server accepts TLS on this port");
}

/* Changes its key for ever, which is no data: OpenSSL would read on within one call. */
static void flood(void)
{
        SSL_CTX *context = SSL_CTX_new(TLS_server_method());
        int client = accept(listener, NULL, NULL);
        SSL *ssl = SSL_new(context);

        (void)signal(SIGPIPE, SIG_DFL);
        SSL_use_certificate(ssl, server.certificate);
        SSL_use_PrivateKey(ssl, server.key);
        SSL_set_fd(ssl, client);
        if (SSL_accept(ssl) != 1)
                _exit(1);
        while (SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && SSL_do_handshake(ssl) == 1)
                ;
        _exit(0);
}

TEST(records_without_data_do_not_hold_up_the_loop)
{
        listen_on_port();
        server_pid = unit_fork_bound();
        if (server_pid == 0)
                flood();
        start("127.0.0.1");
        for (unsigned i = 0; i < 100; i++)
                ck_assert_int_ge(sd_event_run(event, 20 * USEC_PER_MSEC), 0);
        ck_assert(!is_up());
}

TEST_MAIN("TLS", .each = {setup, teardown}, .once = {server_directory_make, server_directory_remove_all},
          .is_missing = server_is_missing)
