/* SPDX-License-Identifier: MIT */
/* TLS for connections to Redis, where hiredis has it (1.0 on); elsewhere tls_new() says that it is not there.
 */
#pragma once

#include "base/macro.h"

struct redis_settings;
struct tls;         /* what connections share: whom they trust, and who they are */
struct tls_session; /* of one connection */
struct redisContext;

#define TLS_WHY_MAX 256

/* Reads the files that the settings name; of the key's content nothing is told. Returns 0 with *ret to be
 * freed by tls_free(); -EPROTONOSUPPORT; -EINVAL with what is wrong in why, which begins with the name of the
 * key of the settings; or -ENOMEM. */
int tls_new(const struct redis_settings *settings, struct tls **ret, char why[static TLS_WHY_MAX]);
/* Returns NULL. */
struct tls *tls_free(struct tls *tls);

/* The connected context speaks TLS from now on; the handshake goes along with what is first written and read.
 * host: the name or address that the server's certificate must be for. The session lives as long as the
 * context. Returns 0 or -errno. */
int tls_start(struct tls *tls, struct redisContext *context, const char *host, struct tls_session **ret);

/* The handshake is done. */
bool tls_is_up(const struct tls_session *session);
/* After a write that left something: it waits for input, not for room. */
bool tls_waits_for_input(const struct tls_session *session);
/* Input is there that the socket does not show any more. */
bool tls_has_input(const struct tls_session *session);
/* Why reading or writing has just failed; NULL: TLS had no part in it. Valid until the next call. */
const char *tls_error(const struct tls_session *session);
