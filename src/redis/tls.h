/* SPDX-License-Identifier: MIT */
/* TLS for connections to Redis, if hiredis supports it (from 1.0 on). Otherwise tls_new() returns
 * -EPROTONOSUPPORT. */
#pragma once

#include "base/macro.h"

struct redis_settings;
struct settings_tls_refusal;
struct tls;         /* shared by connections: trusted authorities and our own certificate */
struct tls_session; /* of one connection */
struct redisContext;

/* Reads the files named in the settings. Never reports any content of the key. Returns 0 with *ret to be
 * freed by tls_free(); -EPROTONOSUPPORT; -EINVAL with the file at fault in *refusal; or -ENOMEM. */
int tls_new(const struct redis_settings *settings, struct tls **ret, struct settings_tls_refusal *refusal);
/* Returns NULL. */
struct tls *tls_free(struct tls *tls);

/* Switches the connected context to TLS. The handshake happens during the first writes and reads. host is the
 * name or address that the server's certificate must match. The context owns the session. Returns 0 or
 * -errno. */
int tls_start(struct tls *tls, struct redisContext *context, const char *host, struct tls_session **ret);

/* Returns true once the handshake is complete. */
bool tls_is_up(const struct tls_session *session);
/* After an incomplete write: returns true if the session waits for input instead of output space. */
bool tls_waits_for_input(const struct tls_session *session);
/* Returns true if decrypted input is buffered, which the socket no longer signals. */
bool tls_has_input(const struct tls_session *session);
/* Returns why the last read or write failed; NULL: not because of TLS. Valid until the next call. */
const char *tls_error(const struct tls_session *session);
