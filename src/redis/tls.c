/* SPDX-License-Identifier: MIT */
/* TLS for connections to Redis; see the header. hiredis verifies only the certificate chain and not the host
 * name, so the sessions are created here. */
#include "redis/tls.h"
#include <config.h>

#if HAVE_TLS
#include "io/resolve.h"
#include "settings/settings.h"
#include <hiredis/hiredis.h>
#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

static SSL *ssl_of(const struct tls_session *session)
{
        return (SSL *)session;
}

static SSL_CTX *ctx_of(struct tls *tls)
{
        return (SSL_CTX *)tls;
}

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

int tls_new(const struct redis_settings *settings, struct tls **ret, struct settings_tls_refusal *refusal)
{
        SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

        if (!ctx)
                return -ENOMEM;
        SSL_CTX_set_default_passwd_cb(ctx, on_password);
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
        int r = SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 ? load(ctx, settings, refusal)
                                                                        : -ENOMEM;
        if (r < 0) {
                SSL_CTX_free(ctx);
                return r;
        }
        *ret = (struct tls *)ctx;
        return 0;
}

struct tls *tls_free(struct tls *tls)
{
        SSL_CTX_free(ctx_of(tls));
        return NULL;
}

/* A host name is also sent to the server (SNI), an address is not. */
static bool set_host(SSL *ssl, const char *host)
{
        if (resolve_is_numeric(host))
                return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
        return SSL_set_tlsext_host_name(ssl, host) == 1 && SSL_set1_host(ssl, host) == 1;
}

int tls_start(struct tls *tls, struct redisContext *context, const char *host, struct tls_session **ret)
{
        SSL *ssl = SSL_new(ctx_of(tls));

        if (!ssl)
                return -ENOMEM;
        ERR_clear_error();
        if (!set_host(ssl, host) || redisInitiateSSL(context, ssl) != REDIS_OK) {
                SSL_free(ssl);
                return -EPROTO;
        }
        *ret = (struct tls_session *)ssl;
        return 0;
}

bool tls_is_up(const struct tls_session *session)
{
        return SSL_is_init_finished(ssl_of(session));
}

bool tls_waits_for_input(const struct tls_session *session)
{
        return SSL_want_read(ssl_of(session));
}

bool tls_has_input(const struct tls_session *session)
{
        return SSL_pending(ssl_of(session)) > 0;
}

const char *tls_error(const struct tls_session *session)
{
        static char text[256];
        long verdict = SSL_get_verify_result(ssl_of(session));

        if (verdict != X509_V_OK)
                snprintf(text, sizeof(text), "server certificate rejected: %s",
                         X509_verify_cert_error_string(verdict));
        else if (ERR_peek_last_error() != 0)
                snprintf(text, sizeof(text), "TLS: %s", last_reason());
        else
                return NULL;
        ERR_clear_error();
        return text;
}

#else

int tls_new(_unused_ const struct redis_settings *settings, _unused_ struct tls **ret,
            _unused_ struct settings_tls_refusal *refusal)
{
        return -EPROTONOSUPPORT;
}

struct tls *tls_free(_unused_ struct tls *tls)
{
        return NULL;
}

int tls_start(_unused_ struct tls *tls, _unused_ struct redisContext *context, _unused_ const char *host,
              _unused_ struct tls_session **ret)
{
        return -EPROTONOSUPPORT;
}

bool tls_is_up(_unused_ const struct tls_session *session)
{
        return false;
}

bool tls_waits_for_input(_unused_ const struct tls_session *session)
{
        return false;
}

bool tls_has_input(_unused_ const struct tls_session *session)
{
        return false;
}

const char *tls_error(_unused_ const struct tls_session *session)
{
        return NULL;
}

#endif
