/* SPDX-License-Identifier: MIT */
/* TLS for connections to Redis; see the header. */
#include "redis/tls.h"
#include "io/resolve.h"
#include "settings/settings.h"
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>

/* The ciphertext that one call may take from the socket: a record. OpenSSL itself continues for as long as a
 * server sends records without data. */
#define CIPHERTEXT_MAX SSL3_RT_MAX_PACKET_SIZE

static_assert(TLS_RECORD_MAX == SSL3_RT_MAX_PLAIN_LENGTH, "a buffer takes a whole record");

struct tls {
        SSL_CTX *context;
        BIO_METHOD *method;
        bool unverified;
};

struct tls_session {
        SSL *ssl;
        const struct tls *tls;
        int fd;
        size_t left; /* ciphertext that this call may still take */
        int error;   /* of the socket: errno; or ENDED */
};

#define ENDED (-1)

/* Prevents a prompt at the terminal for an encrypted key. */
static int on_password(_unused_ char *buffer, _unused_ int size, _unused_ int rwflag, _unused_ void *userdata)
{
        return 0;
}

static const char *last_reason(void)
{
        const char *reason = ERR_reason_error_string(ERR_peek_last_error());

        return reason ? reason : "unknown error";
}

static int refuse(struct settings_tls_refusal *ret, enum settings_tls_file file, const char *name)
{
        static const char *const keys[] = {
                [SETTINGS_TLS_CA] = "tls_ca_file",
                [SETTINGS_TLS_CERT] = "tls_cert_file",
                [SETTINGS_TLS_KEY] = "tls_key_file",
        };

        static_assert(ELEMENTSOF(keys) == _SETTINGS_TLS_MAX, "a key for each");
        ret->file = file;
        snprintf(ret->why, sizeof(ret->why), "%s = %.100s: %.100s", keys[file], name, last_reason());
        ERR_clear_error();
        return -EINVAL;
}

static int load(SSL_CTX *ctx, const struct redis_settings *settings, struct settings_tls_refusal *refusal)
{
        ERR_clear_error();
        if (settings->tls_ca_file) {
                if (SSL_CTX_load_verify_locations(ctx, settings->tls_ca_file, NULL) != 1)
                        return refuse(refusal, SETTINGS_TLS_CA, settings->tls_ca_file);
        } else if (SSL_CTX_set_default_verify_paths(ctx) != 1) {
                return refuse(refusal, SETTINGS_TLS_CA, "system default");
        }
        if (!settings->tls_cert_file || !settings->tls_key_file)
                return 0;
        if (SSL_CTX_use_certificate_chain_file(ctx, settings->tls_cert_file) != 1)
                return refuse(refusal, SETTINGS_TLS_CERT, settings->tls_cert_file);
        if (SSL_CTX_use_PrivateKey_file(ctx, settings->tls_key_file, SSL_FILETYPE_PEM) != 1 ||
            SSL_CTX_check_private_key(ctx) != 1)
                return refuse(refusal, SETTINGS_TLS_KEY, settings->tls_key_file);
        return 0;
}

/* The socket's BIO of OpenSSL would write without MSG_NOSIGNAL, and read without a bound. */
static int bio_read(BIO *bio, char *buffer, int n)
{
        struct tls_session *session = BIO_get_data(bio);
        ssize_t received = -1;

        BIO_clear_retry_flags(bio);
        errno = EAGAIN;
        if (session->left > 0)
                received = recv(session->fd, buffer, MIN((size_t)n, session->left), MSG_DONTWAIT);
        if (received > 0)
                session->left -= (size_t)received;
        else if (received < 0 && (errno == EAGAIN || errno == EINTR))
                BIO_set_retry_read(bio);
        else
                session->error = received == 0 ? ENDED : errno;
        return (int)received;
}

static int bio_write(BIO *bio, const char *bytes, int n)
{
        struct tls_session *session = BIO_get_data(bio);

        BIO_clear_retry_flags(bio);
        ssize_t sent = send(session->fd, bytes, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
                BIO_set_retry_write(bio);
        else if (sent < 0)
                session->error = errno;
        return (int)sent;
}

static long bio_ctrl(_unused_ BIO *bio, int command, _unused_ long number, _unused_ void *pointer)
{
        return command == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *bio)
{
        BIO_set_init(bio, 1);
        return 1;
}

static BIO_METHOD *make_method(void)
{
        BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "sqmgr");

        if (method && BIO_meth_set_read(method, bio_read) == 1 &&
            BIO_meth_set_write(method, bio_write) == 1 && BIO_meth_set_ctrl(method, bio_ctrl) == 1 &&
            BIO_meth_set_create(method, bio_create) == 1)
                return method;
        BIO_meth_free(method);
        return NULL;
}

int tls_new(const struct redis_settings *settings, struct tls **ret, struct settings_tls_refusal *refusal)
{
        struct tls *tls = calloc(1, sizeof(*tls));
        int r = -ENOMEM;

        if (!tls)
                return r;
        tls->unverified = settings->tls_unverified;
        tls->method = make_method();
        tls->context = SSL_CTX_new(TLS_client_method());
        if (tls->method && tls->context && SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION) == 1) {
                SSL_CTX_set_default_passwd_cb(tls->context, on_password);
                SSL_CTX_set_verify(tls->context, tls->unverified ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
                (void)SSL_CTX_set_options(tls->context, SSL_OP_NO_RENEGOTIATION);
                (void)SSL_CTX_set_mode(tls->context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                                             SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                                             SSL_MODE_RELEASE_BUFFERS);
                r = load(tls->context, settings, refusal);
        }
        if (r < 0)
                tls_free(tls);
        else
                *ret = tls;
        return r;
}

struct tls *tls_free(struct tls *tls)
{
        if (!tls)
                return NULL;
        SSL_CTX_free(tls->context);
        BIO_meth_free(tls->method);
        free(tls);
        return NULL;
}

/* A host name is also sent to the server (SNI), an address is not. */
static bool set_host(SSL *ssl, const char *host)
{
        if (resolve_is_numeric(host))
                return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
        return SSL_set_tlsext_host_name(ssl, host) == 1 && SSL_set1_host(ssl, host) == 1;
}

int tls_session_new(struct tls *tls, int fd, const char *host, struct tls_session **ret)
{
        struct tls_session *session = calloc(1, sizeof(*session));
        BIO *bio = session ? BIO_new(tls->method) : NULL;

        if (!bio) {
                free(session);
                return -ENOMEM;
        }
        BIO_set_data(bio, session);
        session->tls = tls;
        session->fd = fd;
        session->ssl = SSL_new(tls->context);
        if (!session->ssl) {
                BIO_free(bio);
                free(session);
                return -ENOMEM;
        }
        SSL_set_bio(session->ssl, bio, bio);
        SSL_set_connect_state(session->ssl);
        if (!set_host(session->ssl, host)) {
                tls_session_free(session);
                return -EINVAL;
        }
        *ret = session;
        return 0;
}

struct tls_session *tls_session_free(struct tls_session *session)
{
        if (session)
                SSL_free(session->ssl);
        free(session);
        return NULL;
}

/* The errors of OpenSSL are of the thread, and older ones would count for this call. */
static void begin_call(struct tls_session *session)
{
        ERR_clear_error();
        session->left = CIPHERTEXT_MAX;
        session->error = 0;
}

static ssize_t end_call(const struct tls_session *session, int r)
{
        if (r > 0)
                return r;
        switch (SSL_get_error(session->ssl, r)) {
        case SSL_ERROR_WANT_READ:
        case SSL_ERROR_WANT_WRITE:
                return -EAGAIN;
        case SSL_ERROR_ZERO_RETURN:
                return 0;
        case SSL_ERROR_SYSCALL:
                if (session->error != 0)
                        return session->error == ENDED ? 0 : -session->error;
                return -EPROTO;
        default:
                return -EPROTO;
        }
}

ssize_t tls_read(struct tls_session *session, void *buffer, size_t n)
{
        begin_call(session);
        return end_call(session, SSL_read(session->ssl, buffer, (int)MIN(n, (size_t)INT_MAX)));
}

ssize_t tls_write(struct tls_session *session, const void *bytes, size_t n)
{
        begin_call(session);
        return end_call(session, SSL_write(session->ssl, bytes, (int)MIN(n, (size_t)INT_MAX)));
}

bool tls_is_up(const struct tls_session *session)
{
        return SSL_is_init_finished(session->ssl);
}

bool tls_wants_write(const struct tls_session *session)
{
        return SSL_want_write(session->ssl);
}

bool tls_wants_read(const struct tls_session *session)
{
        return SSL_want_read(session->ssl);
}

const char *tls_error(const struct tls_session *session)
{
        static char text[256];
        long verdict = SSL_get_verify_result(session->ssl);

        if (verdict != X509_V_OK && !session->tls->unverified)
                snprintf(text, sizeof(text), "server certificate rejected: %s",
                         X509_verify_cert_error_string(verdict));
        else
                snprintf(text, sizeof(text), "TLS: %s", last_reason());
        ERR_clear_error();
        return text;
}
